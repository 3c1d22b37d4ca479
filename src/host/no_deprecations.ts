import process from "node:process";

// Imported before the client library, of which a dependency's dependency loads the deprecated `punycode`: a reader of
// the driver's log cannot act on that warning, and it is not in the log's format.
process.noDeprecation = true;
