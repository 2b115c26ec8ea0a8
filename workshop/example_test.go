package workshop_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/llmdo/workshop/workshop"
)

const worker = `---
name: reviewer
description: Reviews the sources
allowed-tools: Read, Grep
---
You review code.
`

// A workshop is loaded; each worker has its effective container.
func ExampleLoad() {
	project := fstest.MapFS{
		"workshop.yaml": {Data: []byte(`workshop:
  name: review
  container:
    image: host
    network: {mode: restricted, allow: [api.example.org]}
    mounts:
      - ./src:/workspace/src
    resources: {memory: 512M}
  workers:
    - reviewer
`)},
		"src/main.go":         {Data: []byte("package main\n")},
		"workers/reviewer.md": {Data: []byte(worker)},
	}
	w, problems := workshop.Load(context.Background(), project, "workshop.yaml", workshop.Options{})
	if problems.HasErrors() {
		fmt.Println(problems)
		return
	}
	k := w.Workers[0]
	fmt.Println(w.Name.V, k.Name, k.Definition.Description)
	fmt.Println("network:", k.Container.Network.Mode.V)
	for _, m := range k.Container.Mounts {
		fmt.Println("mount:", m.Source.V, "at", m.Target.V)
	}
	fmt.Println("memory:", int64(k.Container.Resources.Memory.V)>>20, "MiB")
	// Output:
	// review reviewer Reviews the sources
	// network: restricted
	// mount: ./src at /workspace/src
	// memory: 512 MiB
}

// All problems of a file come at once, each with its place and what to do.
func ExampleLoad_problems() {
	project := fstest.MapFS{
		"workshop.yaml": {Data: []byte(`workshop:
  name: review
  container:
    image: host
    netwrok: restricted
    mounts:
      - /etc:/workspace/etc
  workers:
    - reviewer
`)},
		"workers/reviewer.md": {Data: []byte(worker)},
	}
	w, problems := workshop.Load(context.Background(), project, "workshop.yaml", workshop.Options{})
	fmt.Println(w == nil)
	for _, d := range problems {
		fmt.Println(d.Error())
		fmt.Println("  ", d.Hint)
	}
	// Output:
	// true
	// workshop.yaml:5:5: error: unknown key "netwrok" in container
	//    did you mean "network"? valid keys: image, build, pull, user, workdir, network, mounts, scratch, tmp, shm, home, resources, env, git_author, secrets, caches, ports, runtime, kernel
	// workshop.yaml:7:9: error: the mount source /etc is protected
	//    mount a directory of the project instead
}
