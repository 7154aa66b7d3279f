//! Peers: programs in workspaces of their own below `peers`, built when they are asked for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A contestant that is not steersman.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// kube-rs with typed pods.
    KubeRs,
    /// The same, `managedFields` dropped before an object is stored.
    KubeRsLean,
}

pub(crate) const ALL: [Peer; 2] = [Peer::KubeRs, Peer::KubeRsLean];

/// Where peers are built, below where the harness is.
const FOLDER: &str = "peers";

/// One program is both of them.
fn program(target: &Path) -> PathBuf {
    target.join(FOLDER).join("release/kube-rs-contestant")
}

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
        }
    }

    /// Its program, if it was built. `target` is where the harness was built.
    pub(crate) fn built(self, target: &Path) -> Option<PathBuf> {
        Some(program(target)).filter(|p| p.is_file())
    }

    /// Builds its program with the release profile and says where it is.
    pub(crate) fn build(self, target: &Path) -> Result<PathBuf, String> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/kube-rs/Cargo.toml");
        let built = Command::new("cargo")
            .args(["build", "--release", "--locked", "--manifest-path"])
            .arg(&manifest)
            .arg("--target-dir")
            .arg(target.join(FOLDER))
            .status()
            .map_err(|e| format!("cargo does not start: {e}"))?;
        if built.success() {
            Ok(program(target))
        } else {
            Err(format!("{} cannot be built: {built}", manifest.display()))
        }
    }
}
