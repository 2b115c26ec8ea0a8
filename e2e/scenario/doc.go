// Package scenario is the frame of the end-to-end tests: a real engine, the
// built programs, a test internet, and a workshop in a directory of its own.
//
// A scenario has one intent and a few steps:
//
//	s := scenario.New(t, "restricted", "a worker reaches what the file names and nothing else")
//	s.Up()
//	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
//	s.Denied("worker", scenario.Denial{Probe: "connect 198.51.100.66:9000 -> ECONNREFUSED", Control: "open"})
//
// A scenario that only looks takes a workshop that stands already: [Standing.Look].
//
// Rules:
//   - State is read from the engine and from inside the containers, by the
//     probe (internal/probe) that the test starts there itself; what our own
//     programs print is only checked where the print is the promise.
//   - A denial has a positive control: the same probe in an ordinary container
//     on an ordinary network of the same engine, which gets through.
//   - A denial comes at once. [FailFast] is asserted for each.
//   - The workshop is in testdata/, and can be run by hand from there; every
//     directory there belongs to a test.
package scenario
