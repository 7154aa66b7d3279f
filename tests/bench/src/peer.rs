//! Peers: programs in workspaces of their own below `peers`, built when they are asked for.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::Args;
use crate::program;

/// A contestant that is not steersman.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// kube-rs with typed pods, as it comes.
    KubeRs,
    /// The same, `managedFields` dropped before an object is stored; so do all that follow.
    KubeRsLean,
    /// On one thread.
    KubeRsCurrent,
    /// With mimalloc.
    KubeRsMimalloc,
    /// With `DynamicObject`s.
    KubeRsDynamic,
    /// Several controllers of one stream and one store, by an unstable feature.
    KubeRsShared,
    /// A shared informer of client-go.
    ClientGo,
    /// A manager of controller-runtime.
    ControllerRuntime,
}

pub(crate) const ALL: [Peer; 8] = [
    Peer::KubeRs,
    Peer::KubeRsLean,
    Peer::KubeRsCurrent,
    Peer::KubeRsMimalloc,
    Peer::KubeRsDynamic,
    Peer::KubeRsShared,
    Peer::ClientGo,
    Peer::ControllerRuntime,
];

/// What is built for several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    KubeRs,
    KubeRsMimalloc,
    ClientGo,
    ControllerRuntime,
}

/// Where peers are built, below where the harness is.
const FOLDER: &str = "peers";

/// So many copies of pods fit into a few GB.
const COPIES: u64 = 100_000;

/// A contestant built in Go asks for pages of this size.
const GO_PAGE: u64 = 500;

impl Peer {
    /// The one of this name.
    pub(crate) fn of(name: &str) -> Result<Self, String> {
        ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| {
            format!("no peer is called {name:?}; there are: {}", ALL.map(Self::name).join(", "))
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KubeRs => "kube-rs",
            Self::KubeRsLean => "kube-rs-lean",
            Self::KubeRsCurrent => "kube-rs-current",
            Self::KubeRsMimalloc => "kube-rs-mimalloc",
            Self::KubeRsDynamic => "kube-rs-dynamic",
            Self::KubeRsShared => "kube-rs-shared",
            Self::ClientGo => "client-go",
            Self::ControllerRuntime => "controller-runtime",
        }
    }

    /// How many packages or modules of others are in its program, if its language can tell.
    pub(crate) fn packages(self) -> Option<usize> {
        let source = self.program().source();
        if let Some(package) = self.program().go() {
            let mut go = Command::new("go");
            go.current_dir(&source).args([
                "list",
                "-deps",
                "-f",
                "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}",
                package,
            ]);
            return program::different_lines(&mut go, |_| true);
        }
        let allocator = self.program() == Program::KubeRsMimalloc;
        program::packages(&source, &[], |package| {
            !package.starts_with("kube-rs-contestant ") && (allocator || !package.contains("mimalloc"))
        })
    }

    const fn program(self) -> Program {
        match self {
            Self::KubeRs
            | Self::KubeRsLean
            | Self::KubeRsCurrent
            | Self::KubeRsDynamic
            | Self::KubeRsShared => Program::KubeRs,
            Self::KubeRsMimalloc => Program::KubeRsMimalloc,
            Self::ClientGo => Program::ClientGo,
            Self::ControllerRuntime => Program::ControllerRuntime,
        }
    }

    /// Whether this is something that it does, and does otherwise than another.
    fn takes(self, args: &Args) -> bool {
        let several = args.controllers > 1;
        match self {
            // As many watches and stores as controllers.
            Self::KubeRs | Self::KubeRsLean if several => args.controllers * args.objects <= COPIES,
            Self::KubeRsCurrent | Self::KubeRsMimalloc | Self::ClientGo if several => false,
            Self::KubeRsDynamic => !args.metadata && !several,
            Self::KubeRsShared => several,
            Self::ClientGo | Self::ControllerRuntime => args.page_size == GO_PAGE,
            _ => true,
        }
    }
}

/// The peers that take part, with their programs. `target` is where the harness was built.
///
/// # Errors
/// If one cannot be built. One that was not built and must not be, one whose language is not installed and one that cannot do
/// what is asked for are left out.
pub(crate) fn programs(args: &Args, target: &Path) -> Result<Vec<(Peer, PathBuf)>, String> {
    let (mut tried, mut all): (Vec<Program>, _) = (Vec::new(), Vec::new());
    for peer in args.peers.iter().flatten().copied().filter(|p| p.takes(args)) {
        let program = peer.program();
        if !args.no_build && !tried.contains(&program) {
            tried.push(program);
            program.build(target)?;
        }
        all.extend(Some(program.path(target)).filter(|p| p.is_file()).map(|path| (peer, path)));
    }
    Ok(all)
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::KubeRs => "kube-rs-contestant",
            Self::KubeRsMimalloc => "kube-rs-mimalloc-contestant",
            Self::ClientGo => "client-go-contestant",
            Self::ControllerRuntime => "controller-runtime-contestant",
        }
    }

    /// Its package, if it is in Go.
    const fn go(self) -> Option<&'static str> {
        match self {
            Self::KubeRs | Self::KubeRsMimalloc => None,
            Self::ClientGo => Some("./cmd/client-go"),
            Self::ControllerRuntime => Some("./cmd/controller-runtime"),
        }
    }

    fn path(self, target: &Path) -> PathBuf {
        let folder = target.join(FOLDER);
        if self.go().is_some() { folder.join(self.name()) } else { folder.join("release").join(self.name()) }
    }

    fn source(self) -> PathBuf {
        let folder = if self.go().is_some() { "peers/go" } else { "peers/kube-rs" };
        Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
    }

    /// Builds it as it would be shipped.
    fn build(self, target: &Path) -> Result<(), String> {
        let source = self.source();
        let mut command;
        if let Some(package) = self.go() {
            command = Command::new("go");
            command.current_dir(&source).args(["build", "-o"]).arg(self.path(target)).arg(package);
        } else {
            command = program::cargo();
            command.args(["build", "--release", "--locked", "--bin", self.name(), "--manifest-path"]);
            command.arg(source.join("Cargo.toml")).arg("--target-dir").arg(target.join(FOLDER));
        }
        match command.status() {
            Ok(built) if built.success() => Ok(()),
            Ok(built) => Err(format!("{} cannot be built: {built}", source.display())),
            Err(e) if self.go().is_some() && e.kind() == ErrorKind::NotFound => {
                eprintln!("go is not installed: {} is left out", self.name());
                Ok(())
            }
            Err(e) => Err(format!("{:?} does not start: {e}", command.get_program())),
        }
    }
}
