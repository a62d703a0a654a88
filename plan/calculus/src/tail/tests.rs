use super::chernoff;
use super::*;
use proptest::prelude::*;

fn grid() -> TailGrid {
    let points =
        |from: i32, to: i32, per: i32| (from..=to).map(|i| (f64::from(i) / f64::from(per)).exp2()).collect();
    TailGrid::new(points(-40, 40, 4), points(-10, 30, 2))
}

/// Windows in which the work is `burst·X + rate·τ`.
fn source(grid: &TailGrid, law: &[(f64, f64)], rate: f64) -> WindowLaws {
    let at = |window: &f64| -> Vec<LawAtom> {
        law.iter().map(|&(work, probability)| LawAtom { work: work + rate * window, probability }).collect()
    };
    let laws: Vec<_> = grid.windows().iter().map(|window| (at(window), at(window))).collect();
    WindowLaws::new(grid, &laws, rate, law.iter().map(|atom| atom.0).fold(0.0, f64::max))
}

/// Bursts and their probabilities, ascending.
fn any_law() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0.01..1.0f64, 0.1..1.0f64), 1..5).prop_map(|mut law| {
        law.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = law.iter().map(|atom| atom.1).sum();
        law.iter().map(|(work, p)| (*work, p / total)).collect()
    })
}

fn tails(grid: &TailGrid, sources: &[&WindowLaws], latency: f64, effort: TailMethod) -> WorkTails {
    let all = LawSums::over(grid, sources.iter().copied());
    let none = LawSums::none(grid);
    // Beyond its rate, the work of a cell is that of its first window.
    let traffic =
        CrossTraffic { grid, same: (sources, &all), same_in_cells: (sources, &all), higher: (&[], &none) };
    WorkTails::new(&traffic, latency, effort)
}

/// P(ΣX > room) by enumeration.
fn exact(laws: &[Vec<(f64, f64)>], room: f64) -> f64 {
    match laws.split_first() {
        None => f64::from(room < 0.0),
        Some((first, rest)) => first.iter().map(|(work, p)| p * exact(rest, room - work)).sum(),
    }
}

proptest! {
    #[test]
    fn independent_bursts_are_bounded(laws in prop::collection::vec(any_law(), 1..5), room in 0.05..3.0f64, rate in prop::sample::select(vec![0.0, 0.5])) {
        let grid = grid();
        let sources: Vec<WindowLaws> = laws.iter().map(|law| source(&grid, law, rate / laws.len() as f64)).collect();
        let sources: Vec<&WindowLaws> = sources.iter().collect();
        // The work beyond the bursts is served as it comes, so the event is that of the bursts alone.
        let [moments, convolved] =
            [TailMethod::Moments, TailMethod::Convolution].map(|e| tails(&grid, &sources, room, e).exceedance(1.0, room));
        prop_assert!(convolved >= exact(&laws, room) - 1e-6);
        prop_assert!(convolved <= moments);
        if rate == 0.0 {
            // One cell is enough then, and what is left is rounding on the lattice.
            let looser = exact(&laws, room * 0.98 - 0.05 * laws.len() as f64);
            prop_assert!(convolved <= looser + 1e-6, "{convolved} against {looser}");
        }
    }

    #[test]
    fn the_lattice_is_exact_but_for_rounding_up(laws in prop::collection::vec(any_law(), 1..4), room in 0.05..3.0f64) {
        let step = 4.0 / 128.0;
        let mut lattice = convolve::Lattice::new(128, step);
        let grid = TailGrid::new(vec![1.0], vec![1.0]);
        let sources: Vec<WindowLaws> = laws.iter().map(|law| source(&grid, law, 0.0)).collect();
        sources.iter().for_each(|source| lattice.add(source.atoms(0)));
        let mut tail = vec![0.0; 129];
        lattice.tail_with(None, &mut tail);
        let point = tail[(0..129).rev().find(|m| *m as f64 * step <= room).unwrap()];
        prop_assert!(point >= exact(&laws, room) - 1e-6);
        prop_assert!(point <= exact(&laws, room - step * (laws.len() + 1) as f64 - 1e-6) + 1e-6);
    }

    #[test]
    fn dependence_is_between_independence_and_hoelder(laws in prop::collection::vec(any_law(), 2..4), theta in 0..30usize) {
        let grid = grid();
        let sources: Vec<WindowLaws> = laws.iter().map(|law| source(&grid, law, 0.0)).collect();
        let sources: Vec<&WindowLaws> = sources.iter().collect();
        let together = WindowLaws::dependent(&grid, &sources);
        let at = |source: &WindowLaws| f64::from(source.log_mgf(0, grid.thetas().len())[theta]);
        let independent: f64 = sources.iter().map(|source| at(source)).sum();
        let slack = 1e-5 * (1.0 + independent.abs());
        prop_assert!(at(&together) >= independent - slack);
        // Hölder with equal weights: the mean of Λ(n·θ).
        let n = laws.len() as f64;
        let as_atoms = |law: &Vec<(f64, f64)>| -> Vec<LawAtom> {
            law.iter().map(|&(work, probability)| LawAtom { work, probability }).collect()
        };
        let hoelder: f64 =
            laws.iter().map(|law| chernoff::log_mgf(&as_atoms(law), &[n * grid.thetas()[theta]])[0] / n).sum();
        prop_assert!(at(&together) <= hoelder + slack, "{} {hoelder}", at(&together));
    }
}

#[test]
fn a_bucket_waits_for_its_burst() {
    let grid = grid();
    let bucket = source(&grid, &[(0.25, 1.0)], 0.1);
    // Alone on the queue: the burst is served after a quarter of a second, whatever came before.
    let exceeds =
        |latency: f64| tails(&grid, &[&bucket], latency, TailMethod::Convolution).exceedance(1.0, latency);
    assert!(exceeds(0.2) > 0.999 && exceeds(0.27) < 1e-9);
    // More than the queue can do is never bounded, nor is it with no room at all.
    let tails = tails(&grid, &[&bucket], 10.0, TailMethod::Convolution);
    assert!(tails.exceedance(0.1, 10.0) >= 1.0 && tails.exceedance(1.0, 0.0) >= 1.0);
}

#[test]
fn a_rate_close_to_the_spare_one_costs_nothing_but_slack() {
    let grid = grid();
    let law = [(0.05, 0.999), (0.5, 0.001)];
    let sources: Vec<WindowLaws> = (0..4).map(|_| source(&grid, &law, 0.23)).collect();
    let sources: Vec<&WindowLaws> = sources.iter().collect();
    // The queue serves 0.95 for them, and they bring 0.92: windows a fifth longer bring more than is served in shorter ones.
    let exceeds = |room: f64| tails(&grid, &sources, room, TailMethod::Convolution).exceedance(0.95, room);
    assert!(exceeds(1.0) < 0.05, "{}", exceeds(1.0));
}

#[test]
fn no_rivals_never_delay() {
    let grid = grid();
    let tails = tails(&grid, &[], 1.0, TailMethod::Moments);
    assert!(tails.exceedance(0.0, 0.0) <= 0.0 && tails.exceedance(0.5, -0.1) >= 1.0);
}

#[test]
fn squares_agree_with_exponentials() {
    let law = [(0.0, 0.7), (0.3, 0.2), (5.0, 0.1)].map(|(work, probability)| LawAtom { work, probability });
    let thetas = grid().thetas().to_vec();
    for (theta, found) in thetas.iter().zip(chernoff::log_mgf(&law, &thetas)) {
        let direct = theta * 5.0
            + law.iter().map(|a| a.probability * (theta * (a.work - 5.0)).exp()).sum::<f64>().ln();
        assert!(found >= direct && found <= direct + 2e-7, "{theta}: {found} {direct}");
    }
}

/// A circular stream: the work that arrives at each instant of its period.
fn any_circular(period: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec((0..period, 1..9u32), 1..4).prop_map(move |jobs| {
        let mut works = vec![0; period];
        jobs.into_iter().for_each(|(at, work)| works[at] += work);
        works
    })
}

/// The work of a closed window that ends at an instant.
fn in_window(stream: &[u32], end: usize, length: usize) -> u32 {
    (0..=length).map(|back| stream[(end + 4 * stream.len() - back) % stream.len()]).sum()
}

/// The law of the work in a window over all instants at which it may end.
fn window_law(stream: &[u32], length: usize) -> Vec<LawAtom> {
    let mut values: Vec<u32> = (0..stream.len()).map(|end| in_window(stream, end, length)).collect();
    values.sort_unstable();
    let chunks = values.chunk_by(|a, b| a == b);
    let atom = |c: &[u32]| LawAtom { work: c[0].into(), probability: c.len() as f64 / stream.len() as f64 };
    chunks.map(atom).collect()
}

const PERIOD: usize = 24;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn passages_bound_what_all_shifts_of_circular_streams_exceed(
        streams in prop::collection::vec(any_circular(PERIOD), 1..4),
        room in 1..20u32,
        spare in prop::sample::select(vec![0.3, 0.7, 1.0]),
        limit in prop::sample::select(vec![None, Some((4.0, 0.2)), Some((8.0, 0.3))]),
        lengths in prop::sample::subsequence((1..=40usize).collect::<Vec<_>>(), 1..=40),
    ) {
        let most = |length: usize| limit.map_or(f64::INFINITY, |(burst, rate)| burst + rate * length as f64);
        let laws: Vec<Vec<Vec<LawAtom>>> =
            lengths.iter().map(|length| streams.iter().map(|stream| window_law(stream, *length)).collect()).collect();
        let windows = lengths.iter().zip(&laws).map(|(length, laws)| {
            let laws = laws.iter().map(|atoms| LimitedLaw { atoms, limit: most(*length) }).collect();
            (*length as f64, laws)
        });
        let bound = Crossings::new((20.0, 1.0), windows).exceedance(spare, room.into());
        let longest = *lengths.last().unwrap();
        let mut exceeded = 0;
        let shifts = PERIOD.pow(u32::try_from(streams.len()).unwrap());
        for shift in 0..shifts {
            let ends = |stream: usize| shift / PERIOD.pow(u32::try_from(stream).unwrap()) % PERIOD;
            let work = |stream: usize, length| in_window(&streams[stream], ends(stream), length);
            let all_small = (0..streams.len()).all(|k| (0..=longest).all(|u| f64::from(work(k, u)) <= most(u)));
            let sum = |length| f64::from((0..streams.len()).map(|k| work(k, length)).sum::<u32>());
            let above = (0..=longest).any(|u| sum(u) > spare * u as f64 + f64::from(room));
            exceeded += usize::from(all_small && above);
        }
        let exact = exceeded as f64 / shifts as f64;
        prop_assert!(bound >= exact - 1e-9, "{bound} below {exact}");
    }
}

/// In a union over the same windows the burst counts nine times, or, in one cell, for as long as it is in the longest window.
#[test]
fn a_burst_passes_a_level_once() {
    let mut stream = vec![0; 1000];
    stream[0] = 10;
    let laws: Vec<Vec<LawAtom>> = (1..=40).map(|length| window_law(&stream, length)).collect();
    let windows = laws
        .iter()
        .zip(1..)
        .map(|(atoms, u)| (f64::from(u), vec![LimitedLaw { atoms, limit: f64::INFINITY }]));
    let bound = Crossings::new((20.0, 1.0), windows).exceedance(1.0, 1.5);
    // Work of 10 in a window of u exceeds u + 1.5 up to u = 8, and so at 9 of 1000 instants; the lattice rounds up.
    assert!((0.009..=0.0101).contains(&(bound + 1e-9)), "{bound}");
}
