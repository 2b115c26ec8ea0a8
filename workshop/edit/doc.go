// Package edit puts lines of network.allow and network.deny, rules of approvals and
// sources into the text of a workshop.yaml. What is there stays byte for byte: comments, order,
// indentation, quotes, ends of lines.
//
// The YAML library gives places only; an edit is text that is put in between.
// The result is read again and must mean what the file meant, and the new
// lines. What can't be edited so is an error that says what to write by hand.
//
// This API is v0: it may change until v1.
package edit
