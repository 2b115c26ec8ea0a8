// Package diagtext renders diagnostics: as text for people, as JSON, as SARIF and
// as GitHub annotations.
package diagtext
