// Package command is what the verbs of the command line have in common: the
// [System] that they may use, the flags and settings that every verb has, the forms
// of their output, messages and questions, completion, and exit codes.
package command
