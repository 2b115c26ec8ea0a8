// Package compose compiles a workshop into a hardened Compose project.
//
// Everything here is pure: [Compile] depends on the workshop alone,
// [WithFacts] adds what the machine is, [Render] writes the files, [Check]
// tells whether a project keeps the promises B1 to B12. What is not in the
// project does not happen: engines carry it out and decide nothing.
package compose
