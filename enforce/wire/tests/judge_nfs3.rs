//! An independent NFSv3 library as judge: it decodes what the client here encodes, and the other way round.

mod common;

use common::{Side, Watch};
use nfs3_types::mount::{fhandle3, mountres3, mountres3_ok};
use nfs3_types::nfs3::*;
use nfs3_types::portmap::mapping;
use nfs3_types::rpc::*;
use nfs3_types::xdr_codec::{Opaque, Pack, Unpack};
use proptest::prelude::*;
use units::Bytes;
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::rpc::decode::{self, CallError};
use wire::{Position, RequestClass, RequestHead};

fn unpack<T: Unpack>(input: &mut &[u8]) -> T {
    T::unpack(input).expect("the judge can read it").0
}

/// Header fields and arguments of the one record that `encode` appends.
fn call<T: Unpack>(
    auth: Credentials<'_>,
    encode: impl FnOnce(&mut CallEncoder<'_>),
) -> ([u32; 4], T, RequestHead) {
    let mut out = Vec::new();
    encode(&mut CallEncoder::new(&mut out, auth));
    let mut watch = Watch::rpc();
    watch.feed(Side::Client, &out).unwrap();
    assert!(watch.is_drained());
    let mut input = &out[..];
    let mark: fragment_header = unpack(&mut input);
    assert!(mark.eof() && mark.fragment_length() as usize == input.len());
    let message: rpc_msg = unpack(&mut input);
    let msg_body::CALL(body) = message.body else { panic!("a call") };
    assert_eq!(body.rpcvers, 2);
    credentials(&body.cred, auth);
    let arguments = unpack(&mut input);
    assert!(input.is_empty(), "nothing behind the arguments");
    ([message.xid, body.prog, body.vers, body.proc], arguments, watch.requests()[0])
}

fn credentials(found: &opaque_auth<'_>, auth: Credentials<'_>) {
    let Credentials::Unix { machine, uid, gid } = auth else {
        return assert_eq!((found.flavor, found.body.len()), (auth_flavor::AUTH_NULL, 0));
    };
    let unix: auth_unix = unpack(&mut &found.body[..]);
    assert_eq!(
        (&unix.machinename[..], unix.uid, unix.gid, unix.gids.len()),
        (machine.as_bytes(), uid, gid, 0)
    );
}

fn handle(data: &[u8]) -> nfs_fh3 {
    nfs_fh3 { data: Opaque::owned(data.to_vec()) }
}

fn auths() -> impl Strategy<Value = Option<(String, u32, u32)>> {
    proptest::option::of(("[a-z]{0,20}", any::<u32>(), any::<u32>()))
}

fn auth(of: Option<&(String, u32, u32)>) -> Credentials<'_> {
    of.map_or(Credentials::None, |(machine, uid, gid)| Credentials::Unix { machine, uid: *uid, gid: *gid })
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..=most)
}

proptest! {
    #[test]
    fn calls(of in auths(), fh in bytes(64), name in bytes(40), offset: u64, count: u32, data in bytes(300), xid: u32, size: Option<u64>) {
        let auth = auth(of.as_ref());
        let (head, args, request) = call::<READ3args>(auth, |calls| calls.read(xid, &fh, offset, count));
        prop_assert_eq!(head, [xid, 100_003, 3, 6]);
        prop_assert_eq!((args.file, args.offset, args.count), (handle(&fh), offset, count));
        prop_assert_eq!((request.id, request.class), (xid.into(), RequestClass::Read(Bytes(count.into()))));
        let Some(Position { object, offset: at }) = request.position else { panic!("a read has a position") };
        prop_assert_eq!(at, offset);

        let (head, args, request) = call::<WRITE3args>(auth, |calls| calls.write(xid, &fh, offset, StableHow::DataSync, &data));
        prop_assert_eq!(head, [xid, 100_003, 3, 7]);
        prop_assert_eq!((args.file, args.offset, args.count as usize), (handle(&fh), offset, data.len()));
        prop_assert!(args.stable == stable_how::DATA_SYNC && args.data[..] == data[..]);
        prop_assert_eq!(request.class, RequestClass::Write(Bytes(data.len() as u64)));
        prop_assert_eq!(request.position, Some(Position { object, offset }), "the same file, the same hash");

        let (head, args, request) = call::<COMMIT3args>(auth, |calls| calls.commit(xid, &fh, offset, count));
        prop_assert_eq!(head, [xid, 100_003, 3, 21]);
        prop_assert_eq!((args.file, args.offset, args.count, request.class), (handle(&fh), offset, count, RequestClass::Control));

        let (head, args, _) = call::<LOOKUP3args>(auth, |calls| calls.lookup(xid, &fh, &name));
        prop_assert_eq!(head, [xid, 100_003, 3, 3]);
        prop_assert!(args.what.dir == handle(&fh) && args.what.name.0[..] == name[..]);

        let (head, args, _) = call::<GETATTR3args>(auth, |calls| calls.getattr(xid, &fh));
        prop_assert_eq!((head, args.object), ([xid, 100_003, 3, 1], handle(&fh)));

        let (head, args, _) = call::<CREATE3args>(auth, |calls| calls.create(xid, &fh, &name, 0o644, size));
        prop_assert_eq!(head, [xid, 100_003, 3, 8]);
        let createhow3::UNCHECKED(wanted) = args.how else { panic!("unchecked") };
        prop_assert!(matches!(wanted.mode, Nfs3Option::Some(0o644)) && wanted.uid.is_none() && wanted.gid.is_none());
        let asked = match wanted.size { Nfs3Option::Some(size) => Some(size), Nfs3Option::None => None };
        prop_assert_eq!(asked, size);

        let (head, path, _) = call::<Opaque>(auth, |calls| calls.mount(xid, &name));
        prop_assert_eq!(head, [xid, 100_005, 3, 1]);
        prop_assert_eq!(&path[..], &name[..]);

        let (head, map, _) = call::<mapping>(auth, |calls| calls.getport(xid, 100_003, 3));
        prop_assert_eq!((head, map.prog, map.vers, map.prot, map.port), ([xid, 100_000, 2, 3], 100_003, 3, 6, 0));
    }

    #[test]
    fn results(fh in bytes(64), data in bytes(300), count: u32, end: bool, size in proptest::option::of(any::<u64>()), before: bool, xid: u32, verifier: [u8; 8]) {
        let attributes = || size.map_or(Nfs3Option::None, |size| Nfs3Option::Some(attributes_of(size)));
        let changes = || wcc_data {
            before: if before { Nfs3Option::Some(unpack(&mut &[0; 24][..])) } else { Nfs3Option::None },
            after: attributes(),
        };
        let read = READ3res::Ok(READ3resok { file_attributes: attributes(), count: u32::try_from(data.len()).unwrap(), eof: end, data: Opaque::borrowed(&data) });
        let body = reply(xid, &read);
        prop_assert_eq!(decode::read(&body), Ok(decode::ReadResult { data: &data, is_end_of_file: end }));
        let write = WRITE3res::Ok(WRITE3resok { file_wcc: changes(), count, committed: stable_how::FILE_SYNC, verf: writeverf3(verifier) });
        let verifier_read = u64::from_be_bytes(verifier);
        prop_assert_eq!(decode::write(&reply(xid, &write)), Ok(decode::WriteResult { count, stable: 2, verifier: verifier_read }));
        let commit = COMMIT3res::Ok(COMMIT3resok { file_wcc: changes(), verf: writeverf3(verifier) });
        prop_assert_eq!(decode::commit(&reply(xid, &commit)), Ok(decode::WriteResult { count: 0, stable: 0, verifier: verifier_read }));
        let lookup = LOOKUP3res::Ok(LOOKUP3resok { object: handle(&fh), obj_attributes: attributes(), dir_attributes: attributes() });
        prop_assert_eq!(decode::lookup(&reply(xid, &lookup)), Ok(decode::NfsFile { handle: fh.clone(), size }));
        let obj = if before { Nfs3Option::Some(handle(&fh)) } else { Nfs3Option::None };
        let create = CREATE3res::Ok(CREATE3resok { obj, obj_attributes: attributes(), dir_wcc: changes() });
        let named = if before { fh.clone() } else { Vec::new() };
        prop_assert_eq!(decode::create(&reply(xid, &create)), Ok(decode::NfsFile { handle: named, size }));
        let getattr = GETATTR3res::Ok(GETATTR3resok { obj_attributes: attributes_of(count.into()) });
        prop_assert_eq!(decode::getattr(&reply(xid, &getattr)), Ok(count.into()));
        let mount = mountres3::Ok(mountres3_ok { fhandle: fhandle3(Opaque::borrowed(&fh)), auth_flavors: vec![1] });
        prop_assert_eq!(decode::mount(&reply(xid, &mount)), Ok(fh));
        prop_assert_eq!(decode::getport(&reply(xid, &count)), Ok(count));
    }

    #[test]
    fn failures(xid: u32, read: bool) {
        let failed = READ3res::Err((nfsstat3::NFS3ERR_STALE, READ3resfail::default()));
        let body = reply(xid, &failed);
        prop_assert_eq!(decode::read(&body), Err(CallError::Status(70)));
        let mut out = Vec::new();
        let mut calls = CallEncoder::new(&mut out, Credentials::None);
        if read { calls.read(xid, b"file", 0, 1) } else { calls.write(xid, b"file", 0, StableHow::Unstable, b"x") }
        let mut watch = Watch::rpc();
        watch.feed(Side::Client, &out).unwrap();
        let answer = marked(&reply(xid, &failed));
        watch.feed(Side::Server, &answer).unwrap();
        let (seen, extent) = watch.replies()[0];
        prop_assert!(seen.is_error && seen.is_solicited && seen.id == u64::from(xid) && extent.last);
        watch.feed(Side::Server, &answer).unwrap();
        prop_assert!(!watch.replies()[1].0.is_solicited, "answered before");
    }
}

fn attributes_of(size: u64) -> fattr3 {
    // A regular file, and nothing else about it.
    let mut bytes = [0; 84];
    bytes[3] = 1;
    fattr3 { size, ..unpack(&mut &bytes[..]) }
}

/// A reply that the server accepts, without its mark.
fn reply(xid: u32, results: &impl Pack) -> Vec<u8> {
    let accepted = accepted_reply { verf: opaque_auth::default(), reply_data: accept_stat_data::SUCCESS };
    let mut out = Vec::new();
    rpc_msg { xid, body: msg_body::REPLY(reply_body::MSG_ACCEPTED(accepted)) }.pack(&mut out).unwrap();
    results.pack(&mut out).unwrap();
    out
}

fn marked(body: &[u8]) -> Vec<u8> {
    let mark = fragment_header::new(u32::try_from(body.len()).unwrap(), true);
    [&mark.into_xdr_buf(), body].concat()
}
