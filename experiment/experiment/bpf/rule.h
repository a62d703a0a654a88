/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Action of a pass on a socket, chosen by the socket's value and its record. tests/simulated_sockets.c simulates it and
 * the programs, with servers and connections at random in between.
 *
 * A record is made before a socket is changed, and a connection inherits a copy of the record of its listening socket,
 * as it inherits its options. So every socket with our value has a record of the value that it would have without us.
 */
#ifndef TAILWRIGHT_RULE_H
#define TAILWRIGHT_RULE_H

/* The value of an option: a number in the first word, or a name of up to 15 bytes, filled up with zeros. */
struct option_value {
	u64 words[2];
};

/* Record of a socket that was changed. */
struct socket_record {
	struct option_value before; /* value that it would have without us */
	struct option_value made;   /* value that we gave it */
	u32 period;                 /* number of the period with the knob on */
	u8 is_servers;              /* the server set `before` while the knob was on */
	u8 is_taken_back;           /* a pass that restores has handled it */
	u16 unused;
};

enum set_step { SET_HAS_IT, SET_FIRST, SET_AGAIN };

INLINE int is_same(const struct option_value *one, const struct option_value *other)
{
	return one->words[0] == other->words[0] && one->words[1] == other->words[1];
}

/* Action of a pass that sets a value; `record` may be null. */
INLINE enum set_step set_step(const struct socket_record *record, const struct option_value *now,
			      const struct option_value *wanted, u32 period)
{
	if (is_same(now, wanted))
		return SET_HAS_IT;
	return record && record->period == period ? SET_AGAIN : SET_FIRST;
}

/* The server set another value while the knob was on: undo has to leave that one. */
INLINE void note_server(struct socket_record *record, const struct option_value *value)
{
	record->before = *value;
	record->is_servers = 1;
}

/* True if undo has to write the old value. Any value but ours was set by the server, and stays. */
INLINE int has_our_value(const struct socket_record *record, const struct option_value *now)
{
	return is_same(now, &record->made) && !is_same(now, &record->before);
}

/* True if the server has set the option meanwhile; its value is then the socket's final one. */
INLINE int is_left_to_server(const struct socket_record *record, const struct option_value *now)
{
	return record->is_servers || (!is_same(now, &record->made) && !is_same(now, &record->before));
}

#endif
