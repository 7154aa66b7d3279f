//! Full states by plain lists, and the one-object list that tells the server's version.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::cmp::Ordering;
use core::time::Duration;

use super::machine::{FullState, Next, State};
use super::trouble::{Class, Trouble};
use super::{Ask, BadObject, Event, ListMeta, Notice, Output, ReqId, Watcher};
use crate::limits;
use crate::machine::Outputs;
use crate::object::{Key, Resource, version};
use crate::time::Time;

/// A list on its way.
pub(super) struct List {
    pub(super) id: ReqId,
    /// The version that page one asked for.
    at: Option<String>,
    limit: Option<u32>,
    /// Pages before this one, and the token that led here.
    page: u32,
    token: String,
    /// The version of page one. Later pages are of the same version, or (if the server continued inconsistently) newer.
    head: String,
    /// `Init` was told. Only once there is something to tell: lists that fail at once say nothing.
    begun: bool,
    objects: u64,
    bad: BTreeMap<Key, BadObject>,
}

/// Refused lists in a row after which the version is given up.
const REFUSALS: u32 = 3;

impl<T: Resource> Watcher<T> {
    pub(super) fn begin_list(&mut self, at: Option<String>, out: &mut Outputs<Output<T>>) {
        let limit = if at.is_none() { self.config.page_size } else { None };
        self.request_list(at, limit, out);
    }

    fn request_list(&mut self, at: Option<String>, limit: Option<u32>, out: &mut Outputs<Output<T>>) {
        let ask = Ask::List { limit, continue_token: None, resource_version: at.clone() };
        let id = self.request(ask, out);
        self.state = State::List(List {
            id,
            at,
            limit,
            page: 0,
            token: String::new(),
            head: String::new(),
            begun: false,
            objects: 0,
            bad: BTreeMap::new(),
        });
    }

    pub(super) fn list_item(&mut self, id: ReqId, item: Result<T, BadObject>, out: &mut Outputs<Output<T>>) {
        match self.take_state() {
            State::List(mut list) if list.id == id => {
                list.begin(out);
                match item {
                    Ok(object) => {
                        list.objects += 1;
                        out.push(Output::Event(Event::InitApply(object)));
                    }
                    Err(bad) => {
                        if let Some(key) = &bad.key {
                            out.push(Output::Event(Event::InitKeep(key.clone())));
                        }
                        self.unreadable(bad, Some(&mut list.bad), out);
                    }
                }
                self.state = State::List(list);
            }
            // Only the version of a probe matters.
            state => {
                if !matches!(state, State::Probe(probe) if probe == id) {
                    self.drop_input();
                }
                self.state = state;
            }
        }
    }

    pub(super) fn list_end(&mut self, now: Time, id: ReqId, meta: ListMeta, out: &mut Outputs<Output<T>>) {
        match self.take_state() {
            State::List(list) if list.id == id => self.page_end(now, list, meta, out),
            State::Probe(probe) if probe == id => self.probed(now, meta.resource_version, out),
            state => {
                self.drop_input();
                self.state = state;
            }
        }
    }

    fn page_end(&mut self, now: Time, mut list: List, meta: ListMeta, out: &mut Outputs<Output<T>>) {
        list.begin(out);
        if list.head.is_empty() {
            list.head = meta.resource_version;
        }
        if meta.continue_token.is_empty() {
            return self.list_complete(now, list, out);
        }
        list.page += 1;
        if list.page >= limits::LIST_PAGES || meta.continue_token == list.token {
            let error = format!("the list does not end: {} pages, the same continue token again", list.page);
            let trouble = Trouble::new(Class::Other, error);
            return self.pause(now, Next::List, trouble, Duration::ZERO, Next::List, out);
        }
        // The token carries the version; a server refuses both together.
        list.token.clone_from(&meta.continue_token);
        let (limit, token) = (list.limit, Some(meta.continue_token));
        list.id = self.request(Ask::List { limit, continue_token: token, resource_version: None }, out);
        self.state = State::List(list);
    }

    fn list_complete(&mut self, now: Time, list: List, out: &mut Outputs<Output<T>>) {
        let List { at, mut head, objects, bad, .. } = list;
        // At "0" a watch would begin with the current objects, in any order; that is no version to go on from.
        if head == "0" {
            head.clear();
        }
        if let Err(trouble) = self.complete(now, FullState { asked: at, head, objects, bad }, out) {
            return self.pause(now, Next::List, trouble, Duration::ZERO, Next::List, out);
        }
        if self.version.is_empty() {
            // The state is known and right, but there is nothing to watch from: ask again, slower and slower.
            let trouble =
                Trouble::new(Class::Other, "the list has no resourceVersion, so it cannot be watched");
            return self.pause(now, Next::Watch, trouble, Duration::ZERO, Next::List, out);
        }
        self.watch(now, out);
    }

    pub(super) fn list_failed(&mut self, now: Time, trouble: Trouble, out: &mut Outputs<Output<T>>) {
        let State::List(list) = self.take_state() else { return };
        match trouble.class {
            // A token outlived the server's memory of its version: pages take too long here.
            Class::Expired if list.page > 0 && list.limit.is_some() => {
                out.push(Output::Notice(Notice::Expired { error: trouble.error }));
                return self.request_list(list.at, None, out);
            }
            Class::Expired | Class::TooLarge if list.at.is_some() => {
                self.unavailable = true;
                out.push(Output::Notice(Notice::Expired { error: trouble.error }));
                return self.begin(now, out);
            }
            // A list at the most recent state is never older than what we know, only dearer for the server.
            Class::Other if list.at.is_some() => {
                self.refusals += 1;
                if self.refusals >= REFUSALS {
                    self.refusals = 0;
                    self.unavailable = true;
                }
            }
            _ => {}
        }
        self.pause(now, Next::List, trouble, Duration::ZERO, Next::List, out);
    }

    /// A watch was silent, or the server was away. A server whose data was restored from a backup is silent at our version
    /// until it has reached it, and then goes on as if nothing had happened; one object of a list tells.
    pub(super) fn probe(&mut self, out: &mut Outputs<Output<T>>) {
        let ask = Ask::List { limit: Some(1), continue_token: None, resource_version: None };
        self.state = State::Probe(self.request(ask, out));
    }

    fn probed(&mut self, now: Time, server: String, out: &mut Outputs<Output<T>>) {
        self.doubt = false;
        if version::compare(&server, &self.version) == Some(Ordering::Less) {
            // Said now: the list may come late enough to be above our version again.
            out.push(Output::Notice(Notice::WentBack { from: self.version.clone(), to: server }));
            (self.unavailable, self.back_told) = (true, true);
            self.begin(now, out);
        } else {
            self.watch(now, out);
        }
    }
}

impl List {
    fn begin<T>(&mut self, out: &mut Outputs<Output<T>>) {
        if !self.begun {
            self.begun = true;
            out.push(Output::Event(Event::Init));
        }
    }
}
