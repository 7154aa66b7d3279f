//! The moments that the faults of a report name.

use steersman_sim::{Entry, Failure, Kind, Lane, What};

/// What matters of each fault that strikes. Of a crash, and of a conflict that is heard of: the request or the commit just
/// before. Of what hides commits from a process or a server: that, and the commits that it hides.
pub(crate) fn moments(failure: &Failure) -> Vec<String> {
    let (mut last, mut hides, mut moments) = ("", Vec::<(usize, usize)>::new(), Vec::<String>::new());
    for Entry { kind, lane, text, .. } in &failure.trace.entries {
        match (kind, lane) {
            (Kind::Asks | Kind::Creates | Kind::Updates | Kind::Deletes, _) => {
                last = text;
                let open = hides.iter().filter(|_| *kind != Kind::Asks);
                open.for_each(|(_, n)| moments[*n].extend(["; ", text.as_str()]));
            }
            (Kind::Strikes, Lane::Fault(n)) => match failure.faults[*n].what {
                What::Crash { .. } => moments.push(last.to_owned()),
                What::Freeze { .. } | What::Blind { .. } => {
                    hides.push((*n, moments.len()));
                    moments.push(last.to_owned());
                }
                _ => {}
            },
            (Kind::Heals, Lane::Fault(n)) => hides.retain(|(fault, _)| fault != n),
            (Kind::Hears, _) if text.contains("(Conflict, 409)") => moments.push(last.to_owned()),
            _ => {}
        }
    }
    moments
}
