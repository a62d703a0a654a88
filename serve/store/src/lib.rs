//! The history of a cluster, in a folder.
//!
//! One SQLite database with a write-ahead log, and a lock by which one process writes. An event is durable when
//! [`Store::append`] returns: each transaction is synced. Events are only ever added; a checksum of each, chained to the
//! one before, tells a history that was changed or cut in the middle from a whole one.
//!
//! Not covered: several controllers on one history (a second one is refused), and histories that do not fit one disk.

use controller::{EVENT_VERSION, Event, RecordedEvent};
use machine::folder_lock::FolderLock;
use rusqlite::backup::Backup;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use workload::Footprint;

/// Name of the database in the folder.
pub const DATABASE: &str = "history.db";

/// Statements that bring a database from one version of the schema to the next; version 0 is an empty one.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY,
        at_ns INTEGER NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        checksum TEXT NOT NULL
    ) STRICT;
    CREATE TABLE trace (
        hash TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        footprints TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
"];

/// Pages that a step of a backup copies.
const BACKUP_PAGES: i32 = 1000;

/// The history of a cluster. The folder is locked while the value exists.
#[derive(Debug)]
pub struct Store {
    database: Connection,
    path: PathBuf,
    /// Checksum of the latest event.
    checksum: String,
    next: u64,
    _lock: FolderLock,
}

/// A store that cannot be used, with a remedy where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    pub message: String,
    pub hint: Option<String>,
}

impl StoreError {
    fn new(path: &Path, message: impl fmt::Display) -> Self {
        Self { message: format!("{}: {message}", path.display()), hint: None }
    }

    fn hint(self, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..self }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}

impl Store {
    /// Opens the history in a folder, and creates it in an empty one. Reads and checks all events.
    ///
    /// # Errors
    /// If another process writes there, the database cannot be used, it was written by a later version, or events are
    /// damaged; the message says up to which event the history is whole.
    pub fn open(folder: &Path) -> Result<(Self, Vec<RecordedEvent>), StoreError> {
        std::fs::create_dir_all(folder).map_err(|error| StoreError::new(folder, error))?;
        let lock = FolderLock::take(folder).map_err(|error| match error.kind() {
            ErrorKind::ResourceBusy => StoreError::new(folder, "another controller runs on this folder")
                .hint("stop that one first, or choose another folder"),
            _ => StoreError::new(folder, error),
        })?;
        let path = folder.join(DATABASE);
        let failed = |error: rusqlite::Error| unusable(&path, &error);
        let mut database = Connection::open(&path).map_err(failed)?;
        database.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        // The log is synced at each commit, so what was answered survives a loss of power.
        database.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        migrate(&mut database, &path)?;
        let mut store = Self { database, path, checksum: String::new(), next: 1, _lock: lock };
        let events = store.read_all()?;
        Ok((store, events))
    }

    /// Appends an event, durably, at this wall clock in nanoseconds since 1970.
    ///
    /// # Errors
    /// If it cannot be written; then the history is as before.
    pub fn append(&mut self, at_ns: u64, event: Event) -> Result<RecordedEvent, StoreError> {
        let recorded = RecordedEvent { seq: self.next, at_ns, version: EVENT_VERSION, event };
        let body = serde_json::to_string(&recorded.event).expect("an event is plain data");
        let checksum = checksum(&self.checksum, recorded.seq, &body);
        let written = self.database.execute(
            "INSERT INTO event (seq, at_ns, version, body, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![signed(recorded.seq), signed(at_ns), EVENT_VERSION, body, checksum],
        );
        written.map_err(|error| unusable(&self.path, &error))?;
        self.next += 1;
        self.checksum = checksum;
        Ok(recorded)
    }

    /// Returns events after a position, at most `limit`, oldest first.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<RecordedEvent>, StoreError> {
        let mut events = Vec::new();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.each_event(seq, limit, |_, recorded, _| {
            events.push(recorded);
            Ok(())
        })?;
        Ok(events)
    }

    /// Keeps the footprints of a tenant's trace by class of server, under its hash.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn keep_trace(
        &mut self,
        tenant: &str,
        hash: &str,
        footprints: &BTreeMap<String, Footprint>,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(footprints).expect("footprints are plain data");
        let key = format!("{tenant}/{hash}");
        let statement = "INSERT OR REPLACE INTO trace (hash, tenant, footprints) VALUES (?1, ?2, ?3)";
        let written = self.database.execute(statement, params![key, tenant, text]);
        written.map(drop).map_err(|error| unusable(&self.path, &error))
    }

    /// Returns the footprints of a tenant's trace with this hash.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn trace(&self, tenant: &str, hash: &str) -> Result<Option<BTreeMap<String, Footprint>>, StoreError> {
        let key = format!("{tenant}/{hash}");
        let statement = "SELECT footprints FROM trace WHERE hash = ?1";
        let found =
            self.database.query_row(statement, params![key], |row| row.get::<_, String>(0)).optional();
        let text = found.map_err(|error| unusable(&self.path, &error))?;
        let parse = |text: String| serde_json::from_str(&text);
        text.map(parse).transpose().map_err(|error| StoreError::new(&self.path, error))
    }

    /// Writes a copy of the history to a file that does not exist, while the store is in use.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        back_up(&self.database, to)
    }

    fn read_all(&mut self) -> Result<Vec<RecordedEvent>, StoreError> {
        let mut events: Vec<RecordedEvent> = Vec::new();
        let mut last = String::new();
        let path = self.path.clone();
        self.each_event(0, i64::MAX, |body, recorded, stored| {
            let seq = recorded.seq;
            let whole = events.len() as u64;
            let expected = checksum(&last, seq, body);
            if seq != whole + 1 || stored != expected {
                return Err(damaged(&path, whole));
            }
            last = expected;
            events.push(recorded);
            Ok(())
        })?;
        self.next = events.len() as u64 + 1;
        self.checksum = last;
        Ok(events)
    }

    /// Calls `each` with the text, the event and the checksum of stored events.
    fn each_event(
        &self,
        after: u64,
        limit: i64,
        mut each: impl FnMut(&str, RecordedEvent, &str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let failed = |error: rusqlite::Error| unusable(&self.path, &error);
        let statement =
            "SELECT seq, at_ns, version, body, checksum FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let mut statement = self.database.prepare(statement).map_err(failed)?;
        let mut rows = statement.query(params![signed(after), limit]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let seq = row.get::<_, i64>(0).map_err(failed)?.cast_unsigned();
            let at_ns = row.get::<_, i64>(1).map_err(failed)?.cast_unsigned();
            let version: u32 = row.get(2).map_err(failed)?;
            let body: String = row.get(3).map_err(failed)?;
            let checksum: String = row.get(4).map_err(failed)?;
            if version > EVENT_VERSION {
                let message =
                    format!("event {seq} has version {version}, and this program knows {EVENT_VERSION}");
                return Err(StoreError::new(&self.path, message).hint("use the later program that wrote it"));
            }
            let event =
                serde_json::from_str(&body).map_err(|_| damaged(&self.path, seq.saturating_sub(1)))?;
            each(&body, RecordedEvent { seq, at_ns, version, event }, &checksum)?;
        }
        Ok(())
    }
}

/// Writes a copy of the history in a folder, which a controller may use, to a file that does not exist.
///
/// # Errors
/// If there is no history, or the file exists or cannot be written.
pub fn back_up_folder(folder: &Path, to: &Path) -> Result<(), StoreError> {
    let path = folder.join(DATABASE);
    if !path.is_file() {
        return Err(StoreError::new(&path, "there is no history").hint("name the folder of a controller"));
    }
    let database = Connection::open(&path).map_err(|error| unusable(&path, &error))?;
    back_up(&database, to)
}

fn back_up(database: &Connection, to: &Path) -> Result<(), StoreError> {
    if to.exists() {
        return Err(StoreError::new(to, "the file exists").hint("name one that does not"));
    }
    // Beside its place first, so that a backup is whole or absent.
    let partial = to.with_extension("partial");
    let failed = |error: rusqlite::Error| unusable(to, &error);
    let _ = std::fs::remove_file(&partial);
    let mut copy = Connection::open(&partial).map_err(failed)?;
    let backup = Backup::new(database, &mut copy).map_err(failed)?;
    backup.run_to_completion(BACKUP_PAGES, Duration::ZERO, None).map_err(failed)?;
    drop(backup);
    copy.close().map_err(|(_, error)| failed(error))?;
    let io = |error: std::io::Error| StoreError::new(to, error);
    std::fs::File::open(&partial).and_then(|file| file.sync_all()).map_err(io)?;
    std::fs::rename(&partial, to).map_err(io)
}

/// Brings the schema to the present version, in one transaction.
fn migrate(database: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| unusable(path, &error);
    let version: u32 = database.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let Some(missing) = MIGRATIONS.get(version as usize..) else {
        let known = MIGRATIONS.len();
        let message = format!("its schema has version {version}, and this program knows {known}");
        return Err(StoreError::new(path, message).hint("use the later program that wrote it"));
    };
    let change = database.transaction().map_err(failed)?;
    for statements in missing {
        change.execute_batch(statements).map_err(failed)?;
    }
    let latest = u32::try_from(MIGRATIONS.len()).expect("few versions");
    change.pragma_update(None, "user_version", latest).map_err(failed)?;
    change.commit().map_err(failed)
}

fn unusable(path: &Path, error: &rusqlite::Error) -> StoreError {
    let described = StoreError::new(path, error);
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            StoreError::new(path, format_args!("it is damaged ({error})"))
                .hint("restore a backup: tailwright controller FOLDER --restore BACKUP, in another folder")
        }
        Some(ErrorCode::DiskFull) => described.hint("free space; nothing was lost"),
        Some(ErrorCode::DatabaseBusy) => described.hint("another program has the database open; close it"),
        _ => described,
    }
}

fn damaged(path: &Path, whole: u64) -> StoreError {
    StoreError::new(path, format_args!("event {} is damaged; events 1 to {whole} are whole", whole + 1))
        .hint("restore a backup: tailwright controller FOLDER --restore BACKUP, in another folder")
}

/// Checksum of an event that follows one with the checksum `before`: 64 bits of FNV-1a, against accidents.
fn checksum(before: &str, seq: u64, body: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in before.bytes().chain(seq.to_be_bytes()).chain(body.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// SQLite's integers are signed.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str) -> Event {
        Event::TokenRevoked { name: name.to_owned() }
    }

    fn folder_with(events: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut store, before) = Store::open(folder.path()).expect("a new store");
        assert_eq!(before, []);
        for name in events {
            store.append(7, event(name)).expect("room");
        }
        folder
    }

    fn change(folder: &Path, statement: &str) {
        let database = Connection::open(folder.join(DATABASE)).expect("a database");
        database.execute_batch(statement).expect("a right statement");
    }

    #[test]
    fn events_are_there_after_a_restart() {
        let folder = folder_with(&["a", "b"]);
        let (mut store, events) = Store::open(folder.path()).expect("a whole store");
        let names: Vec<_> = events.iter().map(|it| (it.seq, it.at_ns, &it.event)).collect();
        assert_eq!(names, [(1, 7, &event("a")), (2, 7, &event("b"))]);
        assert_eq!(store.append(8, event("c")).expect("room").seq, 3);
        let later = store.events_after(1, 1).expect("readable");
        assert_eq!(later.iter().map(|it| it.seq).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_second_writer_is_refused() {
        let folder = folder_with(&[]);
        let (_first, _) = Store::open(folder.path()).expect("a store");
        let error = Store::open(folder.path()).expect_err("it is in use");
        assert!(error.message.contains("another controller runs on this folder"), "{error}");
    }

    #[test]
    fn damage_is_refused_with_what_is_whole() {
        for statement in [
            "UPDATE event SET body = replace(body, 'b', 'x') WHERE seq = 2",
            "DELETE FROM event WHERE seq = 2",
            "UPDATE event SET body = '{' WHERE seq = 2",
        ] {
            let folder = folder_with(&["a", "b", "c"]);
            change(folder.path(), statement);
            let error = Store::open(folder.path()).expect_err(statement);
            assert!(error.message.contains("events 1 to 1 are whole"), "{statement}: {error}");
        }
        let folder = folder_with(&["a"]);
        std::fs::write(folder.path().join(DATABASE), "no database at all, but some text in its place")
            .expect("ours");
        let _ = std::fs::remove_file(folder.path().join("history.db-wal"));
        let error = Store::open(folder.path()).expect_err("it is text");
        assert!(error.message.contains("it is damaged"), "{error}");
    }

    #[test]
    fn later_versions_are_refused() {
        for (statement, part) in [
            ("PRAGMA user_version = 9", "its schema has version 9"),
            ("UPDATE event SET version = 9", "event 1 has version 9"),
        ] {
            let folder = folder_with(&["a"]);
            change(folder.path(), statement);
            let error = Store::open(folder.path()).expect_err(statement);
            assert!(error.message.contains(part), "{error}");
        }
    }

    #[test]
    fn a_backup_of_a_store_in_use_opens() {
        let folder = folder_with(&["a"]);
        let (mut store, _) = Store::open(folder.path()).expect("a store");
        store.append(8, event("b")).expect("room");
        let other = tempfile::tempdir().expect("a folder");
        let copy = other.path().join(DATABASE);
        back_up_folder(folder.path(), &copy).expect("a backup");
        assert!(store.back_up(&copy).is_err(), "it exists");
        let (_, events) = Store::open(other.path()).expect("a whole copy");
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn footprints_are_of_one_tenant() {
        let folder = folder_with(&[]);
        let (mut store, _) = Store::open(folder.path()).expect("a store");
        store.keep_trace("a", "h", &BTreeMap::new()).expect("room");
        assert_eq!(store.trace("a", "h").expect("readable"), Some(BTreeMap::new()));
        assert_eq!(store.trace("b", "h").expect("readable"), None);
    }
}
