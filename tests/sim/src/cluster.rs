//! The cluster as those see it who stand outside of the simulated network: whoever uses it, and whoever checks it.

use steersman_apiserver::machine::{ApiRequest, ApiServer};
use steersman_core::api::kinds::Namespace;
use steersman_core::api::{Answer, Api, DeleteParams, FromObject, Kind, Raw, Request, ResourceType, Status};
use steersman_core::client::{Error, ErrorKind, read_answer};
use steersman_core::object::{Object, ObjectMeta};
use steersman_core::rng::Rng;
use steersman_core::time::{Time, UnixMillis};

/// The true state of the cluster, without network and lag.
pub struct Cluster<'a> {
    pub(crate) truth: &'a mut ApiServer,
    pub(crate) now: Time,
    pub(crate) wall: UnixMillis,
    pub(crate) out: &'a mut steersman_core::machine::Outputs<steersman_apiserver::machine::Output>,
    pub(crate) rng: &'a mut Rng,
}

impl std::fmt::Debug for Cluster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("truth", &self.truth).finish_non_exhaustive()
    }
}

impl Cluster<'_> {
    /// Sends a request, as somebody who may do everything.
    ///
    /// # Errors
    /// The server's refusal.
    pub fn send<R: Answer>(&mut self, request: Request<R>) -> Result<R, Error> {
        let what = request.what.clone();
        let raw = self.raw(request.into_raw());
        read_answer(raw, &what, "cluster")
    }

    fn raw(&mut self, request: Request<Raw>) -> Result<Raw, Error> {
        use steersman_apiserver::machine::{Input, Output};
        use steersman_core::machine::Machine as _;
        if let Some(why) = request.misuse() {
            return Err(Error::new(ErrorKind::Misuse(why.into()), request.what.as_str(), "cluster"));
        }
        let mut sent = ApiRequest::new(request.method.as_str(), &request.path_and_query);
        sent.headers = request.headers;
        sent.body = request.body.unwrap_or_default();
        let conn = steersman_core::net::ConnId(u64::MAX - 1);
        let mut mine = steersman_core::machine::Outputs::new();
        self.truth.handle(self.now, Input::Request { conn, wall: self.wall, request: sent }, &mut mine);
        self.truth.handle(self.now, Input::Gone { conn }, &mut mine);
        let (mut status, mut content, mut bytes) = (0, String::new(), Vec::new());
        for output in mine.drain() {
            match output {
                Output::Respond { conn: c, status: s, headers, body } if c == conn => {
                    status = s;
                    bytes = body.to_vec();
                    content = headers
                        .into_iter()
                        .find(|(n, _)| *n == "Content-Type")
                        .map(|(_, v)| v)
                        .unwrap_or_default();
                }
                other => self.out.push(other),
            }
        }
        if status / 100 == 2 {
            return Ok(Raw(bytes));
        }
        let status = Status::from_response(status, Some(&content), &bytes);
        Err(Error::new(ErrorKind::Api(status), request.what, "cluster"))
    }

    /// Makes an object, or puts it in the place of the one that is there.
    ///
    /// # Panics
    /// If the server refuses it: what a test sets up must be right.
    pub fn put<K: Kind + serde::Serialize + serde::de::DeserializeOwned>(&mut self, object: &K) {
        let value = serde_json::to_value(object).unwrap_or_default();
        let meta = |name: &str| value["metadata"][name].as_str().unwrap_or_default().to_owned();
        let (name, namespace) = (meta("name"), meta("namespace"));
        let mut api = Api::<K>::all();
        if !namespace.is_empty() {
            api = api.within(&namespace);
            self.namespace(&namespace);
        }
        let there = self.send(api.get_opt(&name)).map(|found| found.is_some());
        let put = if there == Ok(true) { api.replace(&name, object) } else { api.create(object) };
        if let Err(e) = self.send(put) {
            panic!("{e}");
        }
    }

    /// Makes a namespace if it is not there.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn namespace(&mut self, name: &str) {
        let api = Api::<Namespace>::cluster();
        let there = self.send(api.get_opt(name)).map(|found| found.is_some());
        if there == Ok(true) {
            return;
        }
        let namespace = Namespace {
            metadata: ObjectMeta { name: name.into(), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        if let Err(e) = self.send(api.create(&namespace)) {
            panic!("{e}");
        }
    }

    /// All objects of a kind, in the order of their keys. What cannot be read as `K` is left out.
    #[must_use]
    pub fn list<K: Kind + FromObject>(&self) -> Vec<K> {
        self.objects(&K::resource_type()).iter().filter_map(|o| K::from_object(o).ok()).collect()
    }

    /// One object, if it is there.
    #[must_use]
    pub fn get<K: Kind + FromObject>(&self, namespace: &str, name: &str) -> Option<K> {
        let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        let found = self.truth.stored(&K::resource_type()).find(|o| o.key == key)?;
        K::from_object(&Object::from_json(found.json).ok()?).ok()
    }

    /// All objects of a resource, in the order of their keys.
    #[must_use]
    pub fn objects(&self, of: &ResourceType) -> Vec<Object> {
        self.truth.stored(of).filter_map(|o| Object::from_json(o.json).ok()).collect()
    }

    /// Deletes the objects of a kind in a namespace that are not named.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn keep_only<K: Kind + FromObject>(&mut self, namespace: &str, names: &[&str]) {
        let api = Api::<K>::namespaced(namespace);
        let others: Vec<String> = self
            .objects(&K::resource_type())
            .iter()
            .filter(|o| o.namespace().unwrap_or_default() == namespace && !names.contains(&o.name()))
            .map(|o| o.name().to_owned())
            .collect();
        for name in others {
            if let Err(e) = self.send(api.delete(&name, &DeleteParams::background())) {
                panic!("{e}");
            }
        }
    }

    /// Adds a disturbance of the machine's own, for what [`What::Answer`](crate::What::Answer) has no word for. It ends with
    /// the first phase.
    pub fn inject(&mut self, fault: steersman_apiserver::machine::Fault) {
        self.truth.inject(fault);
    }

    /// The version of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.truth.revision()
    }

    /// Virtual time since the beginning.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Wall-clock time.
    #[must_use]
    pub fn wall(&self) -> UnixMillis {
        self.wall
    }

    /// Chance for those who change the cluster; drawn from the seed of the run, and from nothing else.
    pub fn rng(&mut self) -> &mut Rng {
        self.rng
    }
}
