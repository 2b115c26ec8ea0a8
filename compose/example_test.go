package compose_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"testing/fstest"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/workshop"
)

// A workshop becomes a Compose project; its files are what `workshop compile` writes.
func ExampleCompile() {
	project := fstest.MapFS{
		"workshop.yaml": {Data: []byte(`workshop:
  name: review
  container:
    image: host
    network: {mode: restricted, allow: [api.example.org]}
  workers:
    - reviewer
`)},
		"workers/reviewer.md": {Data: []byte("---\nname: reviewer\ndescription: Reviews the sources\nallowed-tools: Read\n---\nYou review code.\n")},
	}
	w, problems := workshop.Load(context.Background(), project, "workshop.yaml", workshop.Options{})
	if problems.HasErrors() {
		log.Fatal(problems)
	}
	c, err := compose.Compile(w)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range c.Project.ServiceNames() {
		s := c.Project.Services[name]
		fmt.Printf("%s: cap_drop %s, network_mode %s, read_only %t\n", name, strings.Join(s.CapDrop, " "), s.NetworkMode, s.ReadOnly)
	}
	fmt.Println("violations:", len(compose.Check(c)))
	files, err := compose.Render(c)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(f.Path)
	}
	// Output:
	// guard: cap_drop ALL, network_mode , read_only true
	// reviewer: cap_drop ALL, network_mode service:room, read_only true
	// room: cap_drop ALL, network_mode none, read_only true
	// violations: 0
	// .gitignore
	// compose.yaml
	// guard/policy.json
	// room/rules.v4
	// room/rules.v6
	// seccomp.json
}
