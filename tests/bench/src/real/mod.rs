//! The contestants in turns against a real kube-apiserver: the first state of one kind, and changes at a rate.
//!
//! Whoever watches hears of what is really written: the harness patches an annotation of one object after the other
//! (`writer`), which bears the moment at which the patch was sent. So what is late here includes the server's own work, which
//! the table tells beside it: the time until the patch was answered.

mod cluster;
mod objects;
mod writer;

use std::process::Command;

use serde_json::{Value, json};

use crate::args::Args;
use crate::chart;
use crate::comparison::{Figure, Group};
use crate::contest::{self, Contestant, Process};
use crate::contestant::Resource;
use crate::contests::figure;
use crate::table::median;
use cluster::Cluster;

/// Runs it and prints its tables.
///
/// # Errors
/// If there is no server, or somebody fails.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let mut contestants = contest::contestants(args)?;
    let cluster = Cluster::start(args)?;
    let (mut groups, mut all) = (Vec::new(), serde_json::Map::new());
    for resource in &args.resources {
        let bytes = cluster.objects.fill(args, *resource)?;
        let args = Args { resource: *resource, namespace: cluster.objects.namespace.clone(), ..args.clone() };
        hold(&args, &cluster, &mut contestants)?;
        let group = Group::new(title(&args, bytes), &contestants, &figures(&args));
        groups.push((group, server(&contestants)));
        let runs: serde_json::Map<_, _> =
            contestants.iter_mut().map(|c| (c.name.clone(), std::mem::take(&mut c.runs).into())).collect();
        all.insert(
            resource.name().to_owned(),
            json!({ "objects": args.objects, "bytes": bytes, "rate": args.rate, "contestants": runs }),
        );
    }
    println!("A real kube-apiserver; medians of {}, in turns. Ratios below 1 are better.", args.runs);
    for (group, server) in &groups {
        print!("\n{}\n{server}\n", group.table());
    }
    let groups: Vec<_> = groups.into_iter().map(|(group, _)| group).collect();
    if let Some(path) = &args.json {
        all.insert("figures".to_owned(), Value::Array(groups.iter().flat_map(Group::json).collect()));
        contest::write(path, &(Value::Object(all).to_string() + "\n"))?;
    }
    args.svg.as_ref().map_or(Ok(()), |path| contest::write(path, &chart::svg(&groups)))
}

fn title(args: &Args, bytes: u64) -> String {
    let kind = match args.resource {
        Resource::Pods => "Pods",
        Resource::ConfigMaps => "ConfigMaps",
    };
    format!(
        "{} {kind} of {bytes} bytes, then {} changes at {} a second",
        args.objects, args.events, args.rate
    )
}

/// What the server did meanwhile.
fn server(contestants: &[Contestant]) -> String {
    let of = |name: &str| {
        let runs = contestants.iter().flat_map(|c| &c.runs);
        median(runs.map(|run| run[name].as_f64().unwrap_or(f64::NAN)).collect())
    };
    format!(
        "The server answered a patch after {:.0} us (p50), {:.0} us (p99), and {:.0} of them a second.",
        of("answered_p50") * 1e6,
        of("answered_p99") * 1e6,
        of("rate")
    )
}

fn hold(args: &Args, cluster: &Cluster, contestants: &mut [Contestant]) -> Result<(), String> {
    // The annotations stay: the next one counts from the last event of those before.
    let mut before = 0;
    for run in 0..args.runs {
        for contestant in &mut *contestants {
            let listed = start(&Args { watch: false, before, ..args.clone() }, cluster, contestant)?;
            let listed = figures_of(&listed)?;
            let process = start(&Args { before, ..args.clone() }, cluster, contestant)?;
            process.line()?;
            let written = writer::change(&cluster.objects, args, before)?;
            before += args.events;
            let mut figures = figures_of(&process)?;
            for (name, of) in [("sync", "sync"), ("listed_cpu", "cpu"), ("listed_resident", "resident")] {
                figures[name] = listed[of].clone();
            }
            figures["rate"] = written.rate.into();
            figures["answered_p50"] = written.p50.into();
            figures["answered_p99"] = written.p99.into();
            eprintln!("run {}: {}: {}: {figures}", run + 1, args.resource.name(), contestant.name);
            contestant.runs.push(figures);
        }
    }
    Ok(())
}

fn start(args: &Args, cluster: &Cluster, contestant: &Contestant) -> Result<Process, String> {
    let mut command = Command::new(&contestant.program);
    command.args(args.job_words(&contestant.name, &cluster.kubeconfig));
    Process::start(&contestant.name, command)
}

fn figures_of(process: &Process) -> Result<Value, String> {
    let line = process.line()?;
    serde_json::from_str(&line).map_err(|e| format!("{}: {line:?}: {e}", process.name))
}

fn figures(args: &Args) -> Vec<Figure> {
    let (objects, events) = (args.objects as f64, args.events as f64);
    vec![
        figure("first state s", 2, "sync", 1.0),
        Figure { charted: true, ..figure("CPU us/object", 1, "listed_cpu", 1e6 / objects) },
        Figure { charted: true, ..figure("resident B/object", 0, "listed_resident", 1.0 / objects) },
        Figure { charted: true, ..figure("CPU us/event", 1, "cpu", 1e6 / events) },
        Figure { charted: true, ..figure("p50 us", 0, "p50", 1e6) },
        figure("p99 us", 0, "p99", 1e6),
    ]
}
