//! Demand of a request at a step, as written in the file: `exp(1ms)`, `30% exp(1ms)` or `skip`.

use crate::text_field::ReadText;
use crate::times_source::TimesSource;

/// Demand of a request at a step.
#[derive(Debug, Clone)]
pub(crate) enum StepService {
    /// The request takes the step with this probability, above 0, and needs such a time there.
    Draw(f64, TimesSource),
    /// The request leaves the step out.
    Skip,
}

impl ReadText for StepService {
    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "skip" {
            return Ok(Self::Skip);
        }
        let share =
            text.split_once('%').and_then(|(share, law)| Some((share.trim().parse::<f64>().ok()?, law)));
        match share {
            Some((percent, law)) if percent > 0.0 && percent <= 100.0 => {
                Ok(Self::Draw(percent / 100.0, TimesSource::read(law)?))
            }
            Some(_) => Err(format!("service '{text}', expected a share above 0% and at most 100%")),
            None => TimesSource::read(text).map(|times| Self::Draw(1.0, times)),
        }
    }
}
