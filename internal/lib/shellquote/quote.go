// Package shellquote writes words into command lines that people paste.
package shellquote

import "strings"

// plain are the characters that mean nothing to a POSIX shell within a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// Quote quotes s as one word of a POSIX shell (XCU 2.2), if necessary.
// It is for arguments: a first word with an equals sign would be an assignment.
func Quote(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Path quotes a path, which is no option of the program that it is given to.
func Path(p string) string {
	if strings.HasPrefix(p, "-") {
		p = "./" + p
	}
	return Quote(p)
}
