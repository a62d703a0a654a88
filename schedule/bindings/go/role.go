package gat

import (
	"net/http"
	"sync"
	"time"
)

// sloLongest is a day: what is longer is a mistake of a unit.
const sloLongest = 24 * time.Hour

// Role decides on the tag of a request that comes in: *Edge or *InnerTier.
type Role interface {
	Receive(values []string, now time.Time, request *http.Request) Tag
}

// Edge stamps requests from outside, whatever tags they carry. Starts of one Edge increase strictly.
type Edge struct {
	// SLO is how long after the start the answer is due; 0 for no deadline. One below 0 is taken as 0, and one above a
	// day as a day.
	SLO time.Duration
	// SLOOf is the SLO of the class of a request, in the place of SLO unless it is nil.
	SLOOf func(*http.Request) time.Duration

	mutex  sync.Mutex
	lastNs uint64
}

// Receive is the tag of a request that enters now.
func (edge *Edge) Receive(_ []string, now time.Time, request *http.Request) Tag {
	slo := edge.SLO
	if edge.SLOOf != nil {
		slo = edge.SLOOf(request)
	}
	tag := Tag{StartNs: edge.nextStart(now)}
	if slo > 0 {
		tag.DeadlineNs = tag.StartNs + uint64(min(slo, sloLongest))
	}
	return tag
}

func (edge *Edge) nextStart(now time.Time) uint64 {
	edge.mutex.Lock()
	defer edge.mutex.Unlock()
	edge.lastNs = max(edge.lastNs+1, uint64(max(now.UnixNano(), 0)))
	return edge.lastNs
}

// Counts says how often each case occurred at an InnerTier.
type Counts struct{ Accepted, Untagged, Malformed, Future, TooOld, DeadlineBeforeStart, DeadlineTooFar uint64 }

// InnerTier accepts tags as far as clocks may err, and counts the cases. Without a tag a request starts at its arrival.
type InnerTier struct {
	// AheadMax is by how much a start may be in the future; 0 is one second.
	AheadMax time.Duration
	// AgeMax is how old a request can be; 0 is one hour.
	AgeMax time.Duration
	// SLOMax is how long after its start a request can be due; 0 is a day.
	SLOMax time.Duration

	mutex  sync.Mutex
	counts Counts
}

// Counts are the cases so far.
func (tier *InnerTier) Counts() Counts {
	tier.mutex.Lock()
	defer tier.mutex.Unlock()
	return tier.counts
}

// Receive is the tag by which a request is served here, and which its calls to other services carry.
func (tier *InnerTier) Receive(values []string, now time.Time, _ *http.Request) Tag {
	tier.mutex.Lock()
	defer tier.mutex.Unlock()
	tag, count := tier.judge(values, uint64(max(now.UnixNano(), 0)))
	*count++
	return tag
}

func (tier *InnerTier) judge(values []string, nowNs uint64) (Tag, *uint64) {
	arrived := Tag{StartNs: nowNs}
	tag, found, err := Read(values)
	ageMaxNs := uint64(orDefault(tier.AgeMax, time.Hour))
	oldestNs := nowNs - min(nowNs, ageMaxNs)
	sloMaxNs := uint64(orDefault(tier.SLOMax, sloLongest))
	switch {
	case err != nil:
		return arrived, &tier.counts.Malformed
	case !found:
		return arrived, &tier.counts.Untagged
	case tag.StartNs > nowNs+uint64(orDefault(tier.AheadMax, time.Second)):
		return arrived, &tier.counts.Future
	case tag.StartNs < oldestNs:
		if tag.DeadlineNs < oldestNs || tag.DeadlineNs > oldestNs+sloMaxNs {
			tag.DeadlineNs = 0
		}
		return Tag{oldestNs, tag.DeadlineNs}, &tier.counts.TooOld
	case tag.DeadlineNs != 0 && tag.DeadlineNs < tag.StartNs:
		return Tag{StartNs: tag.StartNs}, &tier.counts.DeadlineBeforeStart
	case tag.DeadlineNs > tag.StartNs+sloMaxNs:
		return Tag{StartNs: tag.StartNs}, &tier.counts.DeadlineTooFar
	}
	return tag, &tier.counts.Accepted
}

func orDefault(value, fallback time.Duration) time.Duration {
	if value == 0 {
		return fallback
	}
	return value
}
