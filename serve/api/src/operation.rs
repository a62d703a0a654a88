//! An operation of the interface: what a method does on a path, for the router and for the description at once.
//!
//! A route is made from an [`Operation`] and from nothing else, so that none is without a description.

use crate::cluster::Cluster;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use std::sync::Arc;

/// A role of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoleName {
    Operator,
    Tenant,
    Agent,
    Metrics,
}

impl RoleName {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Tenant => "tenant",
            Self::Agent => "agent",
            Self::Metrics => "metrics",
        }
    }
}

/// Writes the `content` of a body: its media type, and its schema.
pub(crate) type Content = fn(&mut SchemaGenerator) -> Value;

/// JSON of a type.
pub(crate) fn json_of<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    json!({ "application/json": { "schema": schemas.subschema_for::<T>() } })
}

/// Text without a structure that is described.
pub(crate) fn text(_: &mut SchemaGenerator) -> Value {
    json!({ "text/plain": { "schema": { "type": "string" } } })
}

/// Metrics as Prometheus reads them.
pub(crate) fn open_metrics(_: &mut SchemaGenerator) -> Value {
    json!({ "application/openmetrics-text": { "schema": { "type": "string" } } })
}

/// Server-sent events.
pub(crate) fn event_stream(_: &mut SchemaGenerator) -> Value {
    json!({ "text/event-stream": { "schema": { "type": "string" } } })
}

/// Bytes as they are.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Value {
    json!({ "application/octet-stream": { "schema": { "type": "string", "contentMediaType": "application/octet-stream" } } })
}

/// Any JSON.
pub(crate) fn any_json(_: &mut SchemaGenerator) -> Value {
    json!({ "application/json": { "schema": {} } })
}

/// A method on a path.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Name of the operation in programs.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) detail: Option<&'static str>,
    /// Roles that may call it; without any, no token is needed.
    pub(crate) callers: &'static [RoleName],
    /// Writes the schema of the parameters of the query.
    pub(crate) query: Option<fn(&mut SchemaGenerator) -> Value>,
    /// Names of headers of the request, with their meaning.
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Option<Content>,
    pub(crate) status: u16,
    pub(crate) content: Option<Content>,
    /// True if the answer has an entity tag.
    pub(crate) has_tag: bool,
    /// Statuses of errors beyond those that every operation of its kind has.
    pub(crate) errors: &'static [u16],
    pub(crate) handler: MethodRouter<Arc<Cluster>>,
}

impl Operation {
    fn new<H, T>(
        filter: MethodFilter,
        method: &'static str,
        path: &'static str,
        id: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Arc<Cluster>>,
        T: 'static,
    {
        Self {
            method,
            path,
            id,
            summary: "",
            detail: None,
            callers: &[],
            query: None,
            headers: Vec::new(),
            body: None,
            status: 204,
            content: None,
            has_tag: false,
            errors: &[],
            handler: on(filter, handler),
        }
    }

    pub(crate) fn get<H, T>(path: &'static str, id: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Cluster>>,
        T: 'static,
    {
        Self::new(MethodFilter::GET, "get", path, id, handler)
    }

    pub(crate) fn put<H, T>(path: &'static str, id: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Cluster>>,
        T: 'static,
    {
        Self::new(MethodFilter::PUT, "put", path, id, handler)
    }

    pub(crate) fn post<H, T>(path: &'static str, id: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Cluster>>,
        T: 'static,
    {
        Self::new(MethodFilter::POST, "post", path, id, handler)
    }

    pub(crate) fn delete<H, T>(path: &'static str, id: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Cluster>>,
        T: 'static,
    {
        Self::new(MethodFilter::DELETE, "delete", path, id, handler)
    }

    /// Says what it does, in a phrase without a full stop.
    pub(crate) fn does(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    pub(crate) fn detail(self, detail: &'static str) -> Self {
        Self { detail: Some(detail), ..self }
    }

    pub(crate) fn by(self, callers: &'static [RoleName]) -> Self {
        Self { callers, ..self }
    }

    /// Takes the parameters of a query as a type has them.
    pub(crate) fn query<Q: JsonSchema>(self) -> Self {
        Self { query: Some(|schemas| Q::json_schema(schemas).into()), ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, meaning: &'static str) -> Self {
        self.headers.push((name, meaning));
        self
    }

    pub(crate) fn takes(self, body: Content) -> Self {
        Self { body: Some(body), ..self }
    }

    pub(crate) fn answers(self, content: Content) -> Self {
        Self { status: 200, content: Some(content), ..self }
    }

    pub(crate) fn tagged(self) -> Self {
        Self { has_tag: true, ..self }
    }

    pub(crate) fn errors(self, errors: &'static [u16]) -> Self {
        Self { errors, ..self }
    }

    /// Limits what the handler takes.
    pub(crate) fn body_max(self, bytes: usize) -> Self {
        let handler = self.handler.layer(axum::extract::DefaultBodyLimit::max(bytes));
        Self { handler, ..self }
    }
}
