// Package cli is the command line. It and the packages below are the only ones
// that know cobra and viper, and write to a terminal. Here are the programs: their
// roots, help, version, and what [Main] does to the process. The verbs are below,
// one file each:
//
//	lifecycle  up, down, ps, logs, restart
//	worker     exec, shell, cp
//	firewall   firewall and its commands, presets
//	tools      tools, call
//	check      init, validate, config, compile, check-result, capabilities
//	command    what all verbs have: flags, settings, formats, messages, exit codes
//	terminal   colour, width, progress, raw mode
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
// directory and an engine factory in a command.System. Only [Main] touches the
// process itself.
package cli
