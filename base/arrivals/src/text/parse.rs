//! Distributions and arrival patterns from their text.

use super::error::ExpressionError;
use super::expression::{Argument, CallExpression};
use crate::{
    ArrivalPattern, BatchSize, DistributionFamily, MmppState, ParameterError, RateProcess, TimeDistribution,
};
use std::str::FromStr;
use units::{Nanos, Seconds};

/// The texts of distributions, as errors show them.
const DISTRIBUTIONS: &str = "a time such as 50us, or exp(50us), hyperexp(mean=1ms, c2=4), erlang(mean=1ms, c2=0.3), \
                    lognormal(mean=1ms, c2=4), lognormal(mu=-7, sigma=1), pareto(min=1ms, shape=2.5), \
                    pareto(min=1ms, max=1s, shape=1.1), bimodal(90% 1ms, 10% 10ms), trimodal(…), points(…), \
                    uniform(1ms, 2ms) or empirical(1ms, 2ms, …)";
/// The texts of arrival patterns, as errors show them.
const PATTERNS: &str = "poisson(500/s), constant(500/s), renewal(LAW), mmpp(50/s 2s, 2000/s 100ms), \
                        onoff(sources=20, rate=100/s, on=100ms, off=900ms, shape=1.4), \
                        bmodel(rate=300/s, bias=0.7, interval=1s, levels=20), \
                        diurnal(PROCESS, period=24h, amplitude=0.5, phase=0), sum(PROCESS, …), \
                        batch(4, ARRIVALS) or batch(mean=4, ARRIVALS)";

/// Reports a parameter out of its range at the column where the expression begins.
fn error_at(column: usize) -> impl Fn(ParameterError) -> ExpressionError {
    move |error| ExpressionError { column, message: error.to_string() }
}

impl FromStr for TimeDistribution {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        parse_distribution(Argument::whole(text))
    }
}

impl FromStr for ArrivalPattern {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        parse_pattern(Argument::whole(text))
    }
}

fn parse_distribution(text: Argument<'_>) -> Result<TimeDistribution, ExpressionError> {
    let column = text.column;
    if !text.value.contains('(') {
        let value = text.value.parse().map_err(|_| text.expected(DISTRIBUTIONS))?;
        return TimeDistribution::new(DistributionFamily::Constant(value)).map_err(error_at(column));
    }
    let mut call = CallExpression::read(text, DISTRIBUTIONS)?;
    let distribution = match call.name {
        "const" => TimeDistribution::new(DistributionFamily::Constant(time(call.next("a time")?)?)),
        "exp" => TimeDistribution::new(DistributionFamily::Exponential { mean: time(call.either("mean")?)? }),
        "hyperexp" => two_moments(&mut call, |mean, c2| DistributionFamily::Hyperexponential { mean, c2 })?,
        "erlang" => two_moments(&mut call, |mean, c2| DistributionFamily::Erlang { mean, c2 })?,
        "lognormal" if call.has("mu") => {
            TimeDistribution::log_normal(number(call.key("mu")?)?, number(call.key("sigma")?)?)
        }
        "lognormal" => two_moments(&mut call, |mean, c2| DistributionFamily::LogNormal { mean, c2 })?,
        "pareto" => pareto(&mut call)?,
        "bimodal" => points(&mut call, Some(2))?,
        "trimodal" => points(&mut call, Some(3))?,
        "points" => points(&mut call, None)?,
        "uniform" => {
            let from = time(call.either("from")?)?;
            let to = time(call.either("to")?)?;
            TimeDistribution::new(DistributionFamily::Uniform { from, to })
        }
        "empirical" => TimeDistribution::empirical(call.rest().map(nanos).collect::<Result<Vec<_>, _>>()?),
        _ => return Err(text.expected(DISTRIBUTIONS)),
    };
    call.end()?;
    distribution.map_err(error_at(column))
}

/// A distribution that was read but may have parameters out of their ranges, which the caller reports at the column
/// of the whole expression.
type Unchecked = Result<Result<TimeDistribution, ParameterError>, ExpressionError>;

fn two_moments(call: &mut CallExpression<'_>, shape: fn(Seconds, f64) -> DistributionFamily) -> Unchecked {
    let mean = time(call.either("mean")?)?;
    let c2 = number(call.key("c2")?)?;
    Ok(TimeDistribution::new(shape(mean, c2)))
}

fn pareto(call: &mut CallExpression<'_>) -> Unchecked {
    let shape = number(call.key("shape")?)?;
    if call.has("mean") {
        let column = call.column;
        let mean = time(call.key("mean")?)?;
        ParameterError::require(shape > 1.0, || {
            format!("expected a shape above 1, where there is a mean, found {shape}")
        })
        .map_err(error_at(column))?;
        return Ok(TimeDistribution::new(DistributionFamily::Pareto {
            min: Seconds(mean.0 * (shape - 1.0) / shape),
            shape,
        }));
    }
    let min = time(call.key("min")?)?;
    Ok(TimeDistribution::new(match call.has("max") {
        true => DistributionFamily::BoundedPareto { min, max: time(call.key("max")?)?, shape },
        false => DistributionFamily::Pareto { min, shape },
    }))
}

fn points(call: &mut CallExpression<'_>, count: Option<usize>) -> Unchecked {
    let points = call.rest().map(point).collect::<Result<Vec<_>, _>>()?;
    match count {
        Some(count) if points.len() != count => {
            let message = format!("expected {count} shares, found {}", points.len());
            Err(ExpressionError { column: call.column, message })
        }
        _ => Ok(TimeDistribution::new(DistributionFamily::Points(points))),
    }
}

/// A share and a value.
fn point(argument: Argument<'_>) -> Result<(f64, Seconds), ExpressionError> {
    let wanted = "a share and a time, such as 90% 1ms";
    let (share, value) = argument.split().ok_or_else(|| argument.expected(wanted))?;
    let percent = share.value.strip_suffix('%').and_then(|text| text.parse::<f64>().ok());
    Ok((percent.ok_or_else(|| share.expected("a share such as 90%"))? / 100.0, time(value)?))
}

fn parse_pattern(text: Argument<'_>) -> Result<ArrivalPattern, ExpressionError> {
    let mut call = CallExpression::read(text, PATTERNS)?;
    let pattern = match call.name {
        "renewal" => ArrivalPattern::Renewal(parse_distribution(call.next("the law of the gaps")?)?),
        "batch" => {
            let size = match call.has("mean") {
                true => BatchSize::Geometric { mean: number(call.key("mean")?)? },
                false => BatchSize::Fixed(count(call.next("a number of requests")?)?),
            };
            size.check().map_err(error_at(text.column))?;
            let of = parse_pattern(call.next("the process of the batches")?)?;
            ArrivalPattern::Batches { size, of: Box::new(of) }
        }
        _ => return parse_process(text).map(ArrivalPattern::Process),
    };
    call.end()?;
    // Some parameters are checked only when the stream is made.
    pattern.instants(0).map(drop).map_err(error_at(text.column))?;
    Ok(pattern)
}

fn parse_process(text: Argument<'_>) -> Result<RateProcess, ExpressionError> {
    let mut call = CallExpression::read(text, PATTERNS)?;
    let process = match call.name {
        "poisson" => RateProcess::Poisson { rate: rate(call.either("rate")?)? },
        "constant" => RateProcess::Constant { rate: rate(call.either("rate")?)? },
        "mmpp" => RateProcess::Mmpp { states: call.rest().map(mmpp_state).collect::<Result<_, _>>()? },
        "onoff" => RateProcess::OnOff {
            sources: count(call.key("sources")?)?,
            rate_on: rate(call.key("rate")?)?,
            on_s: time(call.key("on")?)?.0,
            off_s: time(call.key("off")?)?.0,
            shape: number(call.key("shape")?)?,
        },
        "bmodel" => RateProcess::BModel {
            rate: rate(call.key("rate")?)?,
            bias: number(call.key("bias")?)?,
            interval_s: time(call.key("interval")?)?.0,
            levels: count(call.key("levels")?)?,
        },
        "diurnal" => RateProcess::Diurnal {
            period_s: time(call.key("period")?)?.0,
            amplitude: number(call.key("amplitude")?)?,
            phase: if call.has("phase") { number(call.key("phase")?)? } else { 0.0 },
            of: Box::new(parse_process(call.next("a process to modulate")?)?),
        },
        "sum" => RateProcess::Sum(call.rest().map(parse_process).collect::<Result<_, _>>()?),
        _ => return Err(text.expected(PATTERNS)),
    };
    call.end()?;
    process.arrivals(0).map(drop).map_err(error_at(text.column))?;
    Ok(process)
}

fn mmpp_state(argument: Argument<'_>) -> Result<MmppState, ExpressionError> {
    let wanted = "a rate and a mean stay, such as 50/s 2s";
    let (per_second, stay) = argument.split().ok_or_else(|| argument.expected(wanted))?;
    Ok(MmppState { rate: rate(per_second)?, stay_s: time(stay)?.0 })
}

fn time(argument: Argument<'_>) -> Result<Seconds, ExpressionError> {
    argument
        .value
        .parse()
        .map_err(|_| argument.expected("a time such as 150ms, 1.5s or 10min, in ns, us, ms, s, min or h"))
}

fn nanos(argument: Argument<'_>) -> Result<Nanos, ExpressionError> {
    argument
        .value
        .parse()
        .map_err(|_| argument.expected("a time such as 150ms, 1.5s or 10min, in ns, us, ms, s, min or h"))
}

fn number(argument: Argument<'_>) -> Result<f64, ExpressionError> {
    let number = argument.value.parse::<f64>().ok().filter(|value| value.is_finite());
    number.ok_or_else(|| argument.expected("a number"))
}

fn count(argument: Argument<'_>) -> Result<u32, ExpressionError> {
    argument.value.parse().map_err(|_| argument.expected("a whole number"))
}

fn rate(argument: Argument<'_>) -> Result<f64, ExpressionError> {
    per_second(argument.value).ok_or_else(|| argument.expected("a rate such as 500/s, 2/ms or 30/min"))
}

/// A finite number per unit of time, as a number per second.
fn per_second(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once('/')?;
    let per = match unit.trim() {
        "s" => 1.0,
        "ms" => 1e3,
        "us" => 1e6,
        "min" => 1.0 / 60.0,
        "h" => 1.0 / 3600.0,
        _ => return None,
    };
    number.trim().parse::<f64>().ok().map(|number| number * per).filter(|rate| rate.is_finite())
}
