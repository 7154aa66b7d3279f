//! What runs in a simulated process, in the words of the executors' managers.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use steersman_core::api::FromObject;
use steersman_core::controller::plan::Plan;
use steersman_core::controller::{Action, Config, Runnable};
use steersman_core::manager;
use steersman_core::object::Object;
use steersman_core::record::Recorder;
use steersman_core::source::Options;

use crate::desk::Desk;
use crate::job::{Form, PlanForm};
use crate::lockstep::ThreadForm;
use crate::tasks::TaskForm;

/// A process in the making: the controllers of one program. Whoever describes it is called again at every start, since a
/// process that died remembers nothing.
///
/// ```
/// use std::sync::Arc;
/// use steersman_core::api::{Api, kinds::ConfigMap};
/// use steersman_core::controller::{Action, Builder};
/// use steersman_core::controller::plan::{Failure, Planning, Step};
/// use steersman_sim::Replica;
/// fn nothing(_: &Planning<'_>) -> Result<Step, Failure> {
///     Ok(Step::Done(Action::await_change()))
/// }
/// fn program(m: Replica) -> Replica {
///     m.controller(Builder::new(Api::<ConfigMap>::all()).run(Arc::new(nothing)))
/// }
/// ```
pub struct Replica {
    pub(crate) index: usize,
    pub(crate) life: u64,
    pub(crate) desk: Arc<Desk>,
    pub(crate) manager: manager::Config,
    pub(crate) sources: Options,
    pub(crate) recorder: Option<Arc<dyn Recorder>>,
    pub(crate) controllers: Vec<(Config<Object>, Box<dyn Form>)>,
}

/// A reconcile of any of the three forms: an `Arc` of a [`Plan`], an `async fn(Arc<K>, steersman_smol::Context)`, or an
/// `fn(Arc<K>, &steersman_threads::Context)`. `Form` tells which; it is always inferred.
pub trait Reconcile<K, Form>: private::Starts<K, Form> {}

impl<K, F, R: private::Starts<K, F>> Reconcile<K, F> for R {}

mod private {
    pub trait Starts<K, Form> {
        #[doc(hidden)]
        fn form(self) -> super::Made;
    }
}

/// Not for use by others.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "it holds functions")]
pub struct Made(Box<dyn Form>);

/// Marks plans.
#[derive(Debug)]
pub struct OfPlan<P>(PhantomData<P>);

/// Marks async functions.
#[derive(Debug)]
pub struct OfTask<E, Fut>(PhantomData<(E, Fut)>);

/// Marks blocking functions.
#[derive(Debug)]
pub struct OfThread<E>(PhantomData<E>);

impl<K, P: Plan> private::Starts<K, OfPlan<P>> for Arc<P> {
    fn form(self) -> Made {
        Made(Box::new(PlanForm(self)))
    }
}

impl<K, E, F, Fut> private::Starts<K, OfTask<E, Fut>> for F
where
    K: FromObject + Send + Sync + 'static,
    E: fmt::Display + Send + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    F: Fn(Arc<K>, steersman_smol::Context) -> Fut + Send + Sync + 'static,
{
    fn form(self) -> Made {
        Made(Box::new(TaskForm::<K, F, (E, Fut)>(Arc::new(self), PhantomData)))
    }
}

impl<K, E, F> private::Starts<K, OfThread<E>> for F
where
    K: FromObject + 'static,
    E: fmt::Display + 'static,
    F: Fn(Arc<K>, &steersman_threads::Context) -> Result<Action, E> + Send + Sync + 'static,
{
    fn form(self) -> Made {
        Made(Box::new(ThreadForm::<K, F, E>(Arc::new(self), PhantomData)))
    }
}

impl Replica {
    pub(crate) fn new(index: usize, life: u64, desk: Arc<Desk>) -> Self {
        Self {
            index,
            life,
            desk,
            manager: manager::Config::default(),
            sources: Options::default(),
            recorder: None,
            controllers: Vec::new(),
        }
    }

    /// Adds a controller, as it is given to the managers of the executors.
    #[must_use]
    pub fn controller<K, R, Form>(mut self, controller: Runnable<K, R>) -> Self
    where
        R: Reconcile<K, Form>,
    {
        let Runnable { config, reconcile, .. } = controller;
        self.controllers.push((config, reconcile.form().0));
        self
    }

    /// How long the end may take.
    #[must_use]
    pub fn shutdown(mut self, config: manager::Config) -> Self {
        self.manager = config;
        self
    }

    /// Settings of every watch.
    #[must_use]
    pub fn sources(mut self, options: Options) -> Self {
        self.sources = options;
        self
    }

    /// Records every machine of this process, as the managers of the executors do. Every start of a process begins new
    /// recordings.
    #[must_use]
    pub fn record<R: Recorder + Clone + 'static>(mut self, recorder: &R) -> Self {
        self.recorder = Some(Arc::new(recorder.clone()));
        self
    }

    /// Which of the processes of this description it is, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// How often it was started before.
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.life
    }

    /// A client for what the program builds for its async reconciles. It can be used only inside of them.
    #[must_use]
    pub fn smol_client(&self) -> steersman_smol::Client {
        self.desk.smol()
    }

    /// A client for what the program builds for its blocking reconciles. It can be used only inside of them.
    #[must_use]
    pub fn threads_client(&self) -> steersman_threads::Client {
        self.desk.threads()
    }
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.controllers.iter().map(|(c, _)| &c.name).collect();
        f.debug_struct("Replica")
            .field("index", &self.index)
            .field("controllers", &names)
            .finish_non_exhaustive()
    }
}
