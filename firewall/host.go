package firewall

// HostPattern is a name or a wildcard of workshop.yaml. The zero value matches
// nothing.
type HostPattern struct {
	kind hostKind
	name string
}

type hostKind uint8
