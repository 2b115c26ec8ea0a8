// Package client is the host's client of a project's supervisor (package api).
package client
