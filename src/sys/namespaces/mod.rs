//! Making namespaces and executing into them (the launcher and init).
