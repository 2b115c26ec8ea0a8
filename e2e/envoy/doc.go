// Package envoy checks what `workshop firewall export --for envoy` writes: it is read
// strictly into Envoy's protobufs, validated by the rules that they carry, and its policies
// decide the rows that squid and the guard decide (internal/egressacl). Envoy itself isn't
// run.
package envoy
