package firewall

// MachineName is the conventional meaning of a host name on the machine that looks it
// up.
type MachineName int

// The conventions. The zero value is a name without one.
const (
	NoMachine    MachineName = iota
	LoopbackName             // localhost and its aliases
	MetadataName             // the cloud's metadata service, which returns credentials
	EngineHost               // the machine that runs the containers, as engines name it
)

var (
	loopbackNames = names("ip6-localhost ip6-loopback localhost localhost.localdomain")
	metadataNames = names("instance-data instance-data.ec2.internal metadata metadata.goog metadata.google.internal")
	// The names come from the manuals of Docker Desktop, Podman, Lima, Rancher
	// Desktop, OrbStack, minikube and k3d.
	engineHosts = names(`
		host.docker.internal gateway.docker.internal kubernetes.docker.internal vm.docker.internal
		host.containers.internal gateway.containers.internal
		host.lima.internal host.rancher-desktop.internal host.orb.internal host.minikube.internal host.k3d.internal
	`)
)

// Machine returns the conventional meaning of a name.
func (n Name) Machine() MachineName {
	switch {
	case loopbackNames()[n.s], below(n.s, "localhost"):
		return LoopbackName
	case metadataNames()[n.s]:
		return MetadataName
	case engineHosts()[n.s]:
		return EngineHost
	}
	return NoMachine
}

// Machine is [Name.Machine] of the name without the stars.
func (p HostPattern) Machine() MachineName { return Name{p.name}.Machine() }
