import process from "node:process";

// Imported before the client library, of which a dependency's dependency loads the deprecated `punycode`: nobody who reads
// the driver's log could do anything about it, and the line is not one of the log's.
process.noDeprecation = true;
