package draft

// File is a workshop.yaml.
type File struct {
	Name string
	// About are lines of the comment at its beginning: what it was written for.
	About     []string
	Container Container
	MCP       []Server
	Workers   []Worker
}

// Container is what a worker gets. Keys without a value are left out.
type Container struct {
	Image Line
	Build *Build
	User  Line
	// Mode is the network's: none or restricted.
	Mode   string
	Allow  []Line
	Mounts []Line
	// NoMounts: none of the workshop's.
	NoMounts bool
	Workdir  Line
	Shm      Line
	Tmp      Line
	Env      []Pair
	Caches   Line
	Secrets  []Line
	Ports    []Line
	// Memory and CPU are limits, as the file writes them.
	Memory, CPU string
	// Notes are lines of comments above keys, by the key.
	Notes map[string][]string
}

// Build is an image that is built.
type Build struct {
	Context, Dockerfile, Target string
	Args                        []Pair
}

// Line is a value or an item of a list, as YAML, with its reason.
type Line struct {
	Text, Why string
	// Off: it is a comment, which a person makes a line.
	Off bool
}

// Pair is a key with a value that is not quoted yet.
type Pair struct {
	Name, Value, Why string
}

// Worker is an entry of workers. Without tools its definition is in a file.
type Worker struct {
	Name                      string
	Tools                     []string
	Description, Instructions string
	// Secrets and Caches are those of the workshop that it gets, by name.
	Secrets, Caches []string
	// Container is the worker's own; nil: the workshop's.
	Container *Container
	// Why and Off are as in [Line].
	Why string
	Off bool
}

// Server is an MCP server that workers run.
type Server struct {
	Name, Command string
	Args          []string
	Env           []Pair
	// Secrets are names of secrets by variables.
	Secrets []Pair
	Why     string
}
