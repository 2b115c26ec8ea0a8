// Package probe tries things from inside a container and reports the results:
// connections, DNS questions, sockets, routes, files, limits. It verifies the promises of
// the boundary (B1 to B36): a test or a person says what to try, and the probe prints one
// JSON line per try with the expected and the actual result.
//
// # Command line
//
//	workshop-init probe [-quiet] PROBE...
//	workshop-init probe -            probes from stdin, a line each, # comments
//	workshop-init probe help
//
// Each argument is one probe: a name, its arguments and, after "->", the expected
// result, with alternatives:
//
//	'connect 198.51.100.7:443 -> ECONNREFUSED'
//	'dns 198.51.100.66 denied.example.com A -> NXDOMAIN'
//	'read /etc/shadow -> EACCES|ENOENT'
//
// Arguments are separated by blanks; a double-quoted one is read as a Go
// string. `key=value` arguments are options. Every probe has three of them: name=TEXT is
// copied to the result, limit=DURATION ends the try (default 5s, reported as TIMEOUT),
// for=DURATION repeats it for that time and reports all results, joined by "+".
//
// A result is an errno's name, or a word listed in the probe's help; "ERROR" is anything
// else, with the text in detail. The exit code is 0 if every expectation was met, 1 if
// one was not, and 2 for an invalid probe.
package probe
