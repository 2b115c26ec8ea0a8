// Package request has the rules for HTTP requests of a line that has `requests`: which
// methods, and which paths.
//
// A [Target] is what a request asks for, in the one form that is both checked and sent
// (B34): what a server could read in another way is refused, never repaired. A [Rule] is
// one item of `requests`, [Rules] are all of a line, and [Rules.Within] compares two lines.
//
// The package is pure. Sources: RFC 9110 (methods), RFC 9112 section 3.2 (request targets),
// RFC 3986 (paths, queries, percent-encoding).
package request
