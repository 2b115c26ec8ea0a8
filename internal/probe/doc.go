// Package probe tries things from inside a container and tells what it saw:
// connections, questions to name servers, sockets, routes, files, limits. It
// is the witness of the boundary's promises (B1 to B31): a test or a person
// says what to try, the probe prints one JSON line per try with what was
// expected and what was seen.
//
// # Command line
//
//	workshop-init probe [-quiet] PROBE...
//	workshop-init probe -            probes from stdin, a line each, # comments
//	workshop-init probe help
//
// Each argument is one probe: a name, its arguments, and, after "->", what is
// expected of it, with alternatives:
//
//	'connect 198.51.100.7:443 -> ECONNREFUSED'
//	'dns 198.51.100.66 denied.example.com A -> NXDOMAIN'
//	'read /etc/shadow -> EACCES|ENOENT'
//
// Arguments are separated by blanks; a double-quoted one is read as a Go
// string. `key=value` arguments are options. Three of them every probe takes:
// name=TEXT is copied to the result, limit=DURATION ends the try (default 5s,
// seen as TIMEOUT), for=DURATION repeats it so long and reports all that was
// seen, joined by "+".
//
// What was seen is an errno's name, or a word that the probe's help tells;
// "ERROR" is anything else, with the text in detail. The exit code is 0 when
// every expectation was met, 1 when one was not, 2 for a probe that can't be
// read.
package probe
