// Package cli is the command line: one file per verb, the only package that
// knows cobra and viper, and the only one that writes to a terminal.
//
// # Manners
//
// Results go to the standard output, everything else to the standard error.
// An error is one line "workshop: error: …", lower case and without a final
// period, followed by lines "workshop: hint: …" that say what to do. Colour
// and moving progress are for terminals; NO_COLOR and --no-color turn them
// off.
//
// # What commands may use
//
// A command gets a context, streams, an environment lookup, the working
// directory and an engine factory in a [System]. Only [Main] touches the
// process itself.
package cli
