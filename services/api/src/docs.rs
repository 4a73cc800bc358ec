//! `/docs`: the OpenAPI document for people, as one page without scripts and without anything from elsewhere.

use crate::problem::KINDS;
use serde_json::Value;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}\
h1,h2,h3{line-height:1.2}h2{margin-top:2.5rem;border-top:1px solid #d0d7de;padding-top:1rem}code,pre{font-family:ui-monospace,monospace;\
font-size:.9em;background:#f3f4f6;border-radius:4px;padding:.1em .3em}pre{padding:.8em;overflow:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #d0d7de}.method{text-transform:uppercase;font-weight:700}";

/// The page of a document.
pub(crate) fn page(document: &Value) -> String {
    let mut html = String::new();
    write(&mut html, document);
    html
}

/// Appends to a page.
macro_rules! put {
    ($html:expr, $($arg:tt)*) => {
        $html.push_str(&format!($($arg)*))
    };
}

fn write(html: &mut String, document: &Value) {
    let info = &document["info"];
    put!(
        html,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>",
        escape(text(&info["title"]))
    );
    put!(html, "<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>");
    put!(html, "<h1>{} {}</h1>", escape(text(&info["title"])), escape(text(&info["version"])));
    paragraphs(html, text(&info["description"]));
    put!(html, "<p>The machine-readable form is <a href=\"/openapi.json\">/openapi.json</a>.</p>");
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(methods) {
            one(html, path, method, operation);
        }
    }
    schemas(html, &document["components"]["schemas"]);
    put!(html, "<h2>Problems</h2><table><tr><th>type</th><th>status</th><th>meaning</th></tr>");
    for kind in KINDS {
        put!(
            html,
            "<tr><td><code>urn:gpuledger:problem:{}</code></td><td>{}</td><td>{}</td></tr>",
            kind.slug,
            kind.status.as_u16(),
            kind.title
        );
    }
    put!(html, "</table></body></html>");
}

fn one(html: &mut String, path: &str, method: &str, operation: &Value) {
    put!(html, "<h2><span class=\"method\">{}</span> <code>{}</code></h2>", escape(method), escape(path));
    put!(html, "<p><strong>{}</strong></p>", escape(text(&operation["summary"])));
    paragraphs(html, text(&operation["description"]));
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !parameters.is_empty() {
        put!(html, "<h3>Parameters</h3><table><tr><th>name</th><th>in</th><th>meaning</th></tr>");
        for parameter in parameters {
            let needed = if parameter["required"] == true { " (needed)" } else { "" };
            let (name, place) = (escape(text(&parameter["name"])), escape(text(&parameter["in"])));
            let meaning = escape(text(&parameter["description"]));
            put!(html, "<tr><td><code>{name}</code>{needed}</td><td>{place}</td><td>{meaning}</td></tr>");
        }
        put!(html, "</table>");
    }
    if let Some((media, content)) = members(&operation["requestBody"]["content"]).next() {
        put!(
            html,
            "<h3>Body</h3><p>{} (<code>{}</code>)</p>",
            escape(text(&operation["requestBody"]["description"])),
            escape(media)
        );
        let example = serde_json::to_string_pretty(&content["example"]).unwrap_or_default();
        put!(html, "<pre>{}</pre>", escape(&example));
    }
    put!(html, "<h3>Answers</h3><table>");
    for (status, response) in members(&operation["responses"]) {
        let schema = members(&response["content"])
            .next()
            .map(|(_, content)| reference(&content["schema"]))
            .unwrap_or_default();
        put!(
            html,
            "<tr><td>{}</td><td>{} {schema}</td></tr>",
            escape(status),
            escape(text(&response["description"]))
        );
    }
    put!(html, "</table>");
}

fn schemas(html: &mut String, schemas: &Value) {
    for (name, schema) in members(schemas) {
        put!(html, "<h2 id=\"{0}\"><code>{0}</code></h2>", escape(name));
        paragraphs(html, text(&schema["description"]));
        put!(html, "<table>");
        for (member, property) in members(&schema["properties"]) {
            let items = reference(&property["items"]);
            put!(
                html,
                "<tr><td><code>{}</code></td><td>{} {items}</td></tr>",
                escape(member),
                escape(text(&property["description"]))
            );
        }
        put!(html, "</table>");
    }
}

/// A link to a named schema.
fn reference(schema: &Value) -> String {
    let name = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next());
    name.map_or_else(String::new, |name| format!("<a href=\"#{0}\"><code>{0}</code></a>", escape(name)))
}

fn paragraphs(html: &mut String, text: &str) {
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        put!(html, "<p>{}</p>", escape(paragraph));
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_operation_and_loads_nothing() {
        let document = serde_json::to_value(crate::openapi::openapi()).unwrap();
        let html = page(&document);
        let mut operations = 0;
        for (path, methods) in members(&document["paths"]) {
            for (method, operation) in members(methods) {
                let heading = format!("<span class=\"method\">{method}</span> <code>{path}</code>");
                assert!(html.contains(&heading), "{heading}");
                assert!(html.contains(&escape(text(&operation["summary"]))));
                operations += 1;
            }
        }
        assert!(operations >= 7);
        for (name, _) in members(&document["components"]["schemas"]) {
            assert!(html.contains(&format!("id=\"{name}\"")), "{name}");
        }
        for foreign in ["<script", "http://", "https://", "<link", "<img"] {
            assert!(!html.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(escape("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
