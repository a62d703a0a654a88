//! Dump events.
use tailwright_observe::probe::*;
fn main() {
    let port: u16 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut p = AttachedProbes::attach(&ProbeSettings{ports:[port].into(), share:1.0, ring_bytes: 1<<23}).map_err(|e| {eprintln!("{e}"); std::process::exit(1)}).unwrap();
    println!("measuring {}", p.begin_measuring_cost());
    let end = std::time::Instant::now()+std::time::Duration::from_secs(std::env::args().nth(2).unwrap().parse().unwrap());
    let mut n=0;
    while std::time::Instant::now()<end { std::thread::sleep(std::time::Duration::from_millis(20)); n+=p.drain(|e| { if std::env::args().nth(3).is_some() { println!("{e:?}") } }); }
    println!("{n} events, lost {:?}, cost {:?}", p.lost(), p.cost());
}
