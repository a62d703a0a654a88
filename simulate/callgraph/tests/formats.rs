//! Every format reads valid records, and reports the position of invalid ones.

use callgraph::{
    BadRecords, CallGraphBuilder, Outliving, RuleCounts, Span, SpanFormat, SpanKind, Trace, TraceAssembler,
    TraceTimeline, read,
};
use proptest::prelude::*;
use units::Nanos;

fn spans(format: SpanFormat, text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let left_out = read("file", format, BadRecords::Fatal, text.as_bytes(), |span| spans.push(span));
    assert_eq!(left_out.unwrap_or_else(|error| panic!("{error}")), 0);
    spans
}

const JAEGER: &str = r#"{"data": [{"traceID": "t", "spans": [
  {"traceID": "t", "spanID": "r", "operationName": "get", "references": [], "startTime": 5, "duration": 100,
   "processID": "p1", "tags": [{"key": "span.kind", "value": "server"}]},
  {"traceID": "t", "spanID": "c", "operationName": "put", "startTime": 10, "duration": 20, "processID": "p2",
   "references": [{"refType": "FOLLOWS_FROM", "traceID": "t", "spanID": "r"}]}],
  "processes": {"p1": {"serviceName": "a"}, "p2": {"serviceName": "b"}}}], "total": 0}"#;

const OTLP: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}}]},
 "scopeSpans":[{"spans":[
  {"traceId":"t","spanId":"r","name":"get","kind":2,"startTimeUnixNano":"5000","endTimeUnixNano":"105000"}]}]}]}
 {"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"b"}}]},
 "scopeSpans":[{"spans":[
  {"traceId":"t","spanId":"c","parentSpanId":"r","name":"put","kind":"SPAN_KIND_PRODUCER","startTimeUnixNano":10000,
   "endTimeUnixNano":"30000"}]}]}]}"#;

const SPANS: &str = "\u{feff}span_id,trace_id,parent_id,service,\"operation\",kind,start_us,duration_us\r\n\
    r,t,,a,get,server,5,100\r\n\nc,t,r,b,\"put\",producer,10,20\n";

#[test]
fn formats_agree() {
    let csv = spans(SpanFormat::Spans, SPANS);
    assert_eq!(csv.len(), 2);
    assert_eq!((csv[0].start, csv[0].duration, csv[0].kind), (Nanos(5000), Nanos(100_000), SpanKind::Server));
    assert_eq!(spans(SpanFormat::Otlp, OTLP), csv);
    let jaeger = spans(SpanFormat::Jaeger, &[JAEGER, JAEGER].join("\n"));
    assert_eq!(jaeger.len(), 4);
    assert!(jaeger[1].follows && jaeger[1].is_asynchronous());
    let plain = |span: &Span| Span { follows: false, kind: SpanKind::Internal, ..span.clone() };
    assert_eq!(jaeger[..2].iter().map(plain).collect::<Vec<_>>(), csv.iter().map(plain).collect::<Vec<_>>());
}

/// As documented with the data: both sides of an rpc, one row of a database call and of a message.
const ALIBABA: &str = ",traceid,timestamp,rpcid,um,rpctype,dm,interface,rt\n\
    0,t,1000,0,(?),http,front,i0,-50\n\
    1,t,1005,0.1,front,rpc,back,i1,30\n\
    2,t,1010,0.1,front,rpc,back,i1,-20\n\
    3,t,1012,0.1.1,back,db,store,,5\n\
    4,t,1040,0.2,front,mq,mail,,100\n";

#[test]
fn alibaba_rows_are_calls_seen_from_both_sides() {
    let mut counts = RuleCounts::default();
    let trace = Trace::new(spans(SpanFormat::Alibaba, ALIBABA), Outliving::Clipped, &mut counts);
    let times = TraceTimeline::new(&trace);
    let of = |index: usize| {
        let node = &trace.nodes()[index];
        (&*node.span.service, node.parent, times.own[index].0 / 1_000_000)
    };
    // 50 − 30 for the front; 10 to the back and home; 20 − 5 in the back; no request waits for the mail.
    let expected = [
        ("front", None, 20),
        ("front", Some(0), 10),
        ("back", Some(1), 15),
        ("store", Some(2), 5),
        ("mail", Some(0), 100),
    ];
    assert_eq!((0..5).map(of).collect::<Vec<_>>(), expected);
    assert_eq!((counts.asynchronous, counts.outliving, counts.missing_parents), (1, 0, 0));
    let newer = ALIBABA.replace("rpcid", "rpc_id").replace(",-50", ",-50.0");
    assert_eq!(spans(SpanFormat::Alibaba, &newer), spans(SpanFormat::Alibaba, ALIBABA));
}

#[test]
fn errors_name_file_line_and_expectation() {
    let spans = "trace_id,span_id,parent_id,service,operation,start_us,duration_us\n";
    let alibaba = "traceid,timestamp,rpcid,um,rpctype,dm,interface,rt\n";
    let jaeger =
        |span: &str| format!("{{\"data\":\n[{{\"traceID\":\"t\",\"spans\":[{span}],\"processes\":{{}}}}]}}");
    for (format, text, line, part) in [
        (SpanFormat::Spans, String::new(), 1, "a header"),
        (SpanFormat::Spans, "Trace_ID,span\n".to_owned(), 1, "a column span_id"),
        (SpanFormat::Spans, format!("{spans}t,s,,a,o,x,5\n"), 2, "a start in microseconds, found 'x'"),
        (SpanFormat::Spans, format!("{spans}t,s,,a,o,1,-5\n"), 2, "a duration"),
        (
            SpanFormat::Spans,
            format!("{spans}t,s,,a,o,1,5\nt,s,,a\n"),
            3,
            "expected 7 fields as in the header, found 4",
        ),
        (SpanFormat::Spans, format!("{spans},s,,a,o,1,5\n"), 2, "a trace_id"),
        (SpanFormat::Spans, format!("{spans}t,s,,a,o,18446744073709551615,5\n"), 2, "a start"),
        (SpanFormat::Alibaba, format!("{alibaba}t,1,0,a,rpc,b,i,NaN\n"), 2, "an rt"),
        (SpanFormat::Jaeger, "7".to_owned(), 1, "a list of traces"),
        (SpanFormat::Jaeger, "{}".to_owned(), 1, "a list \"data\""),
        (SpanFormat::Jaeger, "{\"data\": [\n{\"spans\"".to_owned(), 2, "EOF"),
        (SpanFormat::Jaeger, jaeger("{\"spanID\":\"s\"}"), 2, "serviceName"),
        (SpanFormat::Jaeger, jaeger("{}"), 2, "spanID"),
        (SpanFormat::Otlp, "{\"resourceSpans\":[7]}".to_owned(), 1, "scopeSpans"),
    ] {
        let error = read("some.file", format, BadRecords::Fatal, text.as_bytes(), |_| {}).expect_err(&text);
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("some.file:{line}: ")) && shown.contains(part), "{text}: {shown}");
    }
}

#[test]
fn lenient_reading_counts_and_goes_on() {
    let text =
        "trace_id,span_id,parent_id,service,operation,start_us,duration_us\nt,s,,a,o,x,5\nt\nt,s,,a,o,1,5\n";
    let mut found = 0;
    let left_out =
        read("f", SpanFormat::Spans, BadRecords::Counted, text.as_bytes(), |_| found += 1).unwrap();
    assert_eq!((left_out, found), (2, 1));
    let json = JAEGER.replace("\"startTime\": 10", "\"startTime\": -10");
    let left_out =
        read("f", SpanFormat::Jaeger, BadRecords::Counted, json.as_bytes(), |_| found += 1).unwrap();
    assert_eq!((left_out, found), (1, 2));
}

#[test]
fn interleaved_traces_come_apart_within_the_window() {
    let span = |trace: usize, id: usize| Span {
        trace: trace.to_string().into(),
        id: id.to_string().into(),
        parent: (id > 0).then(|| "0".into()),
        service: "a".into(),
        operation: "o".into(),
        kind: SpanKind::Internal,
        follows: false,
        start: Nanos(id as u64),
        duration: Nanos(100),
    };
    let fragments = |open_max: usize| {
        let mut assembler = TraceAssembler::new(open_max);
        let mut builder = CallGraphBuilder::new(Outliving::Clipped);
        for (trace, id) in (0..5).flat_map(|id| (0..10).map(move |trace| (trace, id))) {
            assembler.push(span(trace, id)).into_iter().for_each(|spans| drop(builder.push(spans)));
        }
        assembler.finish().for_each(|spans| drop(builder.push(spans)));
        *builder.counts()
    };
    let whole = fragments(10);
    assert_eq!((whole.traces, whole.spans, whole.without_entry, whole.missing_parents), (10, 50, 0, 0));
    let cut = fragments(9);
    assert_eq!((cut.traces, cut.spans, cut.without_entry, cut.missing_parents), (50, 50, 40, 40));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..600) {
        for format in SpanFormat::ALL {
            let _ = read("f", format, BadRecords::Counted, &*bytes, |_| {});
        }
        for (format, text) in [(SpanFormat::Jaeger, JAEGER), (SpanFormat::Otlp, OTLP), (SpanFormat::Spans, SPANS), (SpanFormat::Alibaba, ALIBABA)] {
            let mut damaged = text.as_bytes().to_vec();
            damaged.truncate(cut);
            damaged.extend(&bytes[..bytes.len().min(5)]);
            let _ = read("f", format, BadRecords::Counted, &*damaged, |_| {});
        }
    }
}

/// Ids in upper and lower case, parents of zeros, words for nothing, and 64-bit ids without their leading zeros.
#[test]
fn one_id_in_several_forms_is_one_span() {
    let otlp = |parent: &str, id: &str| {
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"a"}}}}]}},
            "scopeSpans":[{{"spans":[{{"traceId":"0A8E","spanId":"{id}","parentSpanId":"{parent}","name":"n","kind":2,
            "startTimeUnixNano":"1","endTimeUnixNano":"2"}}]}}]}}]}}"#
        )
    };
    for nothing in ["", "0000000000000000", "AAAAAAAAAAA="] {
        let span = &spans(SpanFormat::Otlp, &otlp(nothing, "AEE19B7EC3C1B174"))[0];
        assert_eq!((&*span.trace, &*span.id, &span.parent), ("0a8e", "aee19b7ec3c1b174", &None), "{nothing}");
    }
    let jaeger = |trace: &str, parent: &str| {
        format!(
            r#"{{"data":[{{"processes":{{"p1":{{"serviceName":"a"}}}},"spans":[{{"traceID":"00000000000000Ab","spanID":"0C",
            "operationName":"n","startTime":1,"duration":2,"processID":"p1",
            "references":[{{"refType":"CHILD_OF","traceID":"{trace}","spanID":"{parent}"}}]}}]}}]}}"#
        )
    };
    for (trace, parent, expected) in [
        ("ab", "00d", Some("d")),
        ("AB", "D", Some("d")),
        ("ab", "0", None),
        ("ef", "d", None),
        ("ab", "c", None),
    ] {
        let span = &spans(SpanFormat::Jaeger, &jaeger(trace, parent))[0];
        assert_eq!((&*span.trace, &*span.id), ("ab", "c"));
        assert_eq!(span.parent.as_deref(), expected, "{trace} {parent}");
    }
    for nothing in ["", "null", "NULL", "None", "0000000000000000"] {
        let csv = format!(
            "trace_id,span_id,parent_id,service,operation,start_us,duration_us\nt,1,{nothing},a,n,1,2\n"
        );
        assert_eq!(spans(SpanFormat::Spans, &csv)[0].parent, None, "{nothing}");
    }
}

const ZIPKIN: &str = r#"[[
  {"traceId":"5982FE77008310CC","id":"1","name":"get","kind":"SERVER","timestamp":100,"duration":50,
   "localEndpoint":{"serviceName":"front"}},
  {"traceId":"5982fe77008310cc","parentId":"1","id":"2","name":"read","kind":"CLIENT","timestamp":110,"duration":30,
   "localEndpoint":{"serviceName":"front"}},
  {"traceId":"5982fe77008310cc","parentId":"1","id":"2","shared":true,"name":"read","kind":"SERVER","timestamp":115,
   "duration":20,"localEndpoint":{"serviceName":"store"}}
]]"#;

#[test]
fn zipkin_lists_of_spans_and_of_traces() {
    let read = spans(SpanFormat::Zipkin, ZIPKIN);
    assert_eq!(read, spans(SpanFormat::Zipkin, &ZIPKIN[1..ZIPKIN.len() - 1]), "one trace alone");
    let mut counts = RuleCounts::default();
    let trace = Trace::new(read, Outliving::Clipped, &mut counts);
    let parents: Vec<_> = trace.nodes().iter().map(|node| node.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(1)], "the server shares the id of its caller's view");
    assert_eq!((trace.nodes()[0].start, trace.nodes()[0].span.duration), (Nanos(100_000), Nanos(50_000)));
}

#[test]
fn zipkin_spans_without_times_are_left_out_and_counted() {
    for missing in ["\"timestamp\":110,", "\"duration\":20,"] {
        let text = ZIPKIN.replace(missing, "");
        let mut found = 0;
        let left_out =
            read("f", SpanFormat::Zipkin, BadRecords::Fatal, text.as_bytes(), |_| found += 1).unwrap();
        assert_eq!((found, left_out), (2, 1), "{text}");
    }
}

#[test]
fn tempo_wraps_resources_in_batches() {
    let batches = OTLP.replace("resourceSpans", "batches");
    assert_eq!(spans(SpanFormat::Otlp, &batches), spans(SpanFormat::Otlp, OTLP));
    let (first, _) = OTLP.split_once("\n {\"resource").unwrap();
    for wrapper in ["trace", "result"] {
        let wrapped = format!("{{\"{wrapper}\": {first}}}");
        assert_eq!(spans(SpanFormat::Otlp, &wrapped), spans(SpanFormat::Otlp, first));
    }
}

/// Spans of traces whose entry was not recorded count nowhere but in the number of traces left out.
#[test]
fn fragments_are_left_out_and_counted() {
    let csv = "trace_id,span_id,parent_id,service,operation,start_us,duration_us\n\
               a,1,,front,get,0,1000\na,2,1,store,read,200,700\n\
               b,9,8,store,read,5000,7000\nc,9,8,store,read,9000,7000\n";
    let mut assembler = TraceAssembler::new(10);
    let mut builder = CallGraphBuilder::new(Outliving::Clipped);
    for span in spans(SpanFormat::Spans, csv) {
        assembler.push(span).into_iter().for_each(|spans| drop(builder.push(spans)));
    }
    assembler.finish().for_each(|spans| drop(builder.push(spans)));
    let graph = builder.finish(0);
    let read = graph.operations.iter().find(|operation| operation.name == "read").unwrap();
    assert_eq!((read.own.count, read.own.mean_s, graph.entry.latency.count), (1, 700e-6, 1));
    assert_eq!((graph.counts.traces, graph.counts.without_entry, graph.counts.missing_parents), (3, 2, 2));
}

#[test]
fn the_caller_is_the_parent_before_what_a_span_follows() {
    let both = JAEGER.replace(
        r#"[{"refType": "FOLLOWS_FROM", "traceID": "t", "spanID": "r"}]"#,
        r#"[{"refType": "FOLLOWS_FROM", "traceID": "t", "spanID": "q"},
            {"refType": "CHILD_OF", "traceID": "t", "spanID": "r"}]"#,
    );
    let span = &spans(SpanFormat::Jaeger, &both)[1];
    assert_eq!((span.parent.as_deref(), span.follows), (Some("r"), false));
}

#[test]
fn empty_lists_and_services_without_a_name_are_no_errors() {
    assert_eq!(spans(SpanFormat::Otlp, r#"{"resourceSpans":[{"resource":{}}, {"scopeSpans":[{}]}]}"#), []);
    let nameless = OTLP.replace("service.name", "host.name");
    assert!(spans(SpanFormat::Otlp, &nameless).iter().all(|span| &*span.service == "unknown"));
    let first = r#"[{"traceId":"1","id":"2","annotations":[{"endpoint":{"serviceName":"a"},"timestamp":1,"value":"sr"}]}]"#;
    let refused = read("f", SpanFormat::Zipkin, BadRecords::Fatal, first.as_bytes(), |_| {}).unwrap_err();
    assert!(refused.to_string().contains("version 1"), "{refused}");
}
