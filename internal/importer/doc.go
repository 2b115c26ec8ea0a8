// Package importer reads files that describe containers and servers for other programs
// (devcontainer.json, .mcp.json, compose.yaml) into a draft of a workshop.yaml. What has
// no counterpart, and what would open a worker's boundary, is named with its place and
// what to do; it is never imported.
//
// It is pure: the text comes in, nothing else is read, and nothing in it is run. Texts
// are hostile: size, depth and number of values are bounded (B60).
package importer
