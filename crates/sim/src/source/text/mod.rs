//! The short text of laws and arrivals, read and printed so that it reads back to the same value
//! (shares that are no decimal percentage, to the last digit of a double).
//!
//! `name(argument, key=argument, …)`; a bare time is a constant. An error says at which column and what was
//! expected there.

mod call;
mod print;

use super::arrival::{Arrival, Batch};
use super::law::{Law, Shape};
use super::{MmppState, ParameterError, Process};
use call::{Argument, Call};
use std::fmt;
use std::str::FromStr;
use units::{Nanos, Seconds};

const LAWS: &str = "a time such as 50us, or exp(50us), hyperexp(mean=1ms, c2=4), erlang(mean=1ms, c2=0.3), \
                    lognormal(mean=1ms, c2=4), lognormal(mu=-7, sigma=1), pareto(min=1ms, shape=2.5), \
                    pareto(min=1ms, max=1s, shape=1.1), bimodal(90% 1ms, 10% 10ms), trimodal(…), points(…), \
                    uniform(1ms, 2ms) or empirical(1ms, 2ms, …)";
const ARRIVALS: &str = "poisson(500/s), constant(500/s), renewal(LAW), mmpp(50/s 2s, 2000/s 100ms), \
                        onoff(sources=20, rate=100/s, on=100ms, off=900ms, shape=1.4), \
                        bmodel(rate=300/s, bias=0.7, interval=1s, levels=20), \
                        diurnal(PROCESS, period=24h, amplitude=0.5, phase=0), sum(PROCESS, …), \
                        batch(4, ARRIVALS) or batch(mean=4, ARRIVALS)";

/// Text that describes no law or arrival process: where, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// Column, from 1, in characters.
    pub column: usize,
    /// Of which the text breaks off.
    pub message: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for TextError {}

/// A parameter out of its range, told at the column where its description begins.
fn at(column: usize) -> impl Fn(ParameterError) -> TextError {
    move |error| TextError { column, message: error.to_string() }
}

impl FromStr for Law {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        law(Argument::whole(text))
    }
}

impl FromStr for Arrival {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        arrival(Argument::whole(text))
    }
}

fn law(text: Argument<'_>) -> Result<Law, TextError> {
    let column = text.column;
    if !text.value.contains('(') {
        let value = text.value.parse().map_err(|_| text.expected(LAWS))?;
        return Law::new(Shape::Constant(value)).map_err(at(column));
    }
    let mut call = Call::read(text, LAWS)?;
    let law = match call.name {
        "const" => Law::new(Shape::Constant(time(call.next("a time")?)?)),
        "exp" => Law::new(Shape::Exponential { mean: time(call.either("mean")?)? }),
        "hyperexp" => two_moments(&mut call, |mean, c2| Shape::Hyperexponential { mean, c2 })?,
        "erlang" => two_moments(&mut call, |mean, c2| Shape::Erlang { mean, c2 })?,
        "lognormal" if call.has("mu") => {
            Law::log_normal(number(call.key("mu")?)?, number(call.key("sigma")?)?)
        }
        "lognormal" => two_moments(&mut call, |mean, c2| Shape::LogNormal { mean, c2 })?,
        "pareto" => pareto(&mut call)?,
        "bimodal" => points(&mut call, Some(2))?,
        "trimodal" => points(&mut call, Some(3))?,
        "points" => points(&mut call, None)?,
        "uniform" => {
            let (from, to) = (time(call.either("from")?)?, time(call.either("to")?)?);
            Law::new(Shape::Uniform { from, to })
        }
        "empirical" => Law::empirical(call.rest().map(nanos).collect::<Result<Vec<_>, _>>()?),
        _ => return Err(text.expected(LAWS)),
    };
    call.end()?;
    law.map_err(at(column))
}

type Parsed<T> = Result<Result<T, ParameterError>, TextError>;

fn two_moments(call: &mut Call<'_>, shape: fn(Seconds, f64) -> Shape) -> Parsed<Law> {
    let (mean, c2) = (time(call.either("mean")?)?, number(call.key("c2")?)?);
    Ok(Law::new(shape(mean, c2)))
}

fn pareto(call: &mut Call<'_>) -> Parsed<Law> {
    let shape = number(call.key("shape")?)?;
    if call.has("mean") {
        let (at, mean) = (call.column, time(call.key("mean")?)?);
        ParameterError::require(shape > 1.0, || {
            format!("expected a shape above 1, where there is a mean, found {shape}")
        })
        .map_err(self::at(at))?;
        return Ok(Law::new(Shape::Pareto { min: Seconds(mean.0 * (shape - 1.0) / shape), shape }));
    }
    let min = time(call.key("min")?)?;
    Ok(Law::new(match call.has("max") {
        true => Shape::BoundedPareto { min, max: time(call.key("max")?)?, shape },
        false => Shape::Pareto { min, shape },
    }))
}

fn points(call: &mut Call<'_>, count: Option<usize>) -> Parsed<Law> {
    let point = |argument: Argument<'_>| {
        let wrong = "a share and a time, such as 90% 1ms";
        let (share, value) = argument.split().ok_or_else(|| argument.expected(wrong))?;
        let percent = share.value.strip_suffix('%').and_then(|text| text.parse::<f64>().ok());
        Ok((percent.ok_or_else(|| share.expected("a share such as 90%"))? / 100.0, time(value)?))
    };
    let points = call.rest().map(point).collect::<Result<Vec<_>, _>>()?;
    match count {
        Some(count) if points.len() != count => {
            let message = format!("expected {count} shares, found {}", points.len());
            Err(TextError { column: call.column, message })
        }
        _ => Ok(Law::new(Shape::Points(points))),
    }
}

fn arrival(text: Argument<'_>) -> Result<Arrival, TextError> {
    let mut call = Call::read(text, ARRIVALS)?;
    let arrival = match call.name {
        "renewal" => Arrival::Renewal(law(call.next("the law of the gaps")?)?),
        "batch" => {
            let size = match call.has("mean") {
                true => Batch::Geometric { mean: number(call.key("mean")?)? },
                false => Batch::Fixed(count(call.next("a number of requests")?)?),
            };
            size.check().map_err(at(text.column))?;
            Arrival::Batches { size, of: Box::new(arrival(call.next("the process of the batches")?)?) }
        }
        _ => return process(text).map(Arrival::Process),
    };
    call.end()?;
    // Parameters that only the stream checks.
    arrival.instants(0).map(drop).map_err(at(text.column))?;
    Ok(arrival)
}

fn process(text: Argument<'_>) -> Result<Process, TextError> {
    let mut call = Call::read(text, ARRIVALS)?;
    let process = match call.name {
        "poisson" => Process::Poisson { rate: rate(call.either("rate")?)? },
        "constant" => Process::Constant { rate: rate(call.either("rate")?)? },
        "mmpp" => Process::Mmpp { states: call.rest().map(state).collect::<Result<_, _>>()? },
        "onoff" => Process::OnOff {
            sources: count(call.key("sources")?)?,
            rate_on: rate(call.key("rate")?)?,
            on_s: time(call.key("on")?)?.0,
            off_s: time(call.key("off")?)?.0,
            shape: number(call.key("shape")?)?,
        },
        "bmodel" => Process::BModel {
            rate: rate(call.key("rate")?)?,
            bias: number(call.key("bias")?)?,
            interval_s: time(call.key("interval")?)?.0,
            levels: count(call.key("levels")?)?,
        },
        "diurnal" => Process::Diurnal {
            period_s: time(call.key("period")?)?.0,
            amplitude: number(call.key("amplitude")?)?,
            phase: if call.has("phase") { number(call.key("phase")?)? } else { 0.0 },
            of: Box::new(process(call.next("a process to modulate")?)?),
        },
        "sum" => Process::Sum(call.rest().map(process).collect::<Result<_, _>>()?),
        _ => return Err(text.expected(ARRIVALS)),
    };
    call.end()?;
    process.arrivals(0).map(drop).map_err(at(text.column))?;
    Ok(process)
}

fn state(argument: Argument<'_>) -> Result<MmppState, TextError> {
    let wrong = "a rate and a mean stay, such as 50/s 2s";
    let (per_second, stay) = argument.split().ok_or_else(|| argument.expected(wrong))?;
    Ok(MmppState { rate: rate(per_second)?, stay_s: time(stay)?.0 })
}

fn time(argument: Argument<'_>) -> Result<Seconds, TextError> {
    argument.value.parse().map_err(|_| argument.expected("a time such as 150ms, 1.5s, 20us or 10min"))
}

fn nanos(argument: Argument<'_>) -> Result<Nanos, TextError> {
    argument.value.parse().map_err(|_| argument.expected("a time such as 150ms, 1.5s, 20us or 10min"))
}

fn number(argument: Argument<'_>) -> Result<f64, TextError> {
    let number = argument.value.parse::<f64>().ok().filter(|value| value.is_finite());
    number.ok_or_else(|| argument.expected("a number"))
}

fn count(argument: Argument<'_>) -> Result<u32, TextError> {
    argument.value.parse().map_err(|_| argument.expected("a whole number"))
}

fn rate(argument: Argument<'_>) -> Result<f64, TextError> {
    let read = || {
        let (number, unit) = argument.value.split_once('/')?;
        let per = match unit.trim() {
            "s" => 1.0,
            "ms" => 1e3,
            "us" => 1e6,
            "min" => 1.0 / 60.0,
            "h" => 1.0 / 3600.0,
            _ => return None,
        };
        number.trim().parse::<f64>().ok().map(|number| number * per).filter(|rate| rate.is_finite())
    };
    read().ok_or_else(|| argument.expected("a rate such as 500/s, 2/ms or 30/min"))
}
