// Package egressacl writes the network policy of a workshop as access rules of an egress
// proxy that exists: squid and Envoy.
//
// What a proxy can't decide is closed in its file, and a diagnostic at the line says so;
// where a file must allow more than the guard does, or less, another one does. Denials
// look nothing up: names are decided before addresses.
//
// The package is pure: a policy goes in, and text and diagnostics come out.
package egressacl

import (
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// Options of a file.
type Options struct {
	// Guard is the user by which squid knows the workshop's guard that chains through it:
	// it alone may connect to addresses of the Internet. Empty: nobody may.
	Guard string
}

// Renderer writes the rules of one proxy. Where the diagnostics have an error, there is no
// text.
type Renderer func(*firewall.Policy, Options) ([]byte, diag.List)
