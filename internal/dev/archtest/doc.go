// Package archtest keeps the rules of the house: who may import whom, what the
// small program stays without, and how large a file may grow. The rules are
// data in its tests, each with its reason.
package archtest
