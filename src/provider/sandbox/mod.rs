//! The embedded provider: Linux namespaces over an idmapped overlay.
