//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// npmPeer is the peer from npm, and what it needs.
const npmPeer = "@anthropic-ai/sandbox-runtime@0.0.78"

// oneOff measures a whole `workshop run -- true` without a file: what starts and what
// removes it, with a record and limits.
func (b *bench) oneOff() error {
	if err := b.need("bwrap=bubblewrap", "npm=npm", "rg=ripgrep", "socat=socat"); err != nil {
		return err
	}
	if err := b.importImage(); err != nil {
		return err
	}
	peer, err := b.needNPMPeer()
	if err != nil {
		return err
	}
	for _, uid := range []int{0, benchUser} {
		if err := b.oneOffAs(uid, peer); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) oneOffAs(uid int, peer string) error {
	u, err := b.user(uid)
	if err != nil {
		return err
	}
	who := "root"
	if uid != 0 {
		who = "rootless"
	}
	dir := filepath.Join(u.home, "empty")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		return err
	}
	none, network := []string{"run"}, []string{"run", "--allow", "allowed.example.org"}
	if uid != 0 {
		none, network = append(none, "--without-limits"), append(network, "--without-limits")
	}
	docker := b.dockerTrue([]string{"run", "--rm", benchImage, "/bin/true", "--help"})
	onDocker := u.command(b, dir, b.workshop(), "run", "--engine", "docker", "--", "true")
	if uid != 0 {
		onDocker = func() error { return nil }
	}
	t, err := b.compete(max(11, b.rounds),
		contender{u.command(b, dir, b.workshop(), append(none, "--", "true")...), 1},
		contender{u.command(b, dir, b.workshop(), append(network, "--", "true")...), 1},
		contender{docker, 1},
		contender{u.command(b, dir, peer, "true"), 1},
		contender{u.command(b, "/", "bwrap", "--unshare-all", "--ro-bind", "/", "/", "/bin/true"), 1},
		contender{onDocker, 1},
	)
	if err != nil {
		return err
	}
	ours := t[0].median()
	b.add(row{what: "workshop run -- true, " + who, against: "docker run --rm", ours: ours, other: t[2].median(), unit: "ms", limit: 0.3})
	b.add(row{what: "workshop run -- true, " + who, against: npmPeer, ours: ours, other: t[3].median(), unit: "ms", limit: 1})
	b.add(row{what: "workshop run -- true, " + who, against: "bwrap --unshare-all", ours: ours, other: t[4].median(), unit: "ms", note: "no limits, guard, record or removal there"})
	b.add(row{what: "workshop run --allow HOST -- true, " + who, against: "docker run --rm", ours: t[1].median(), other: t[2].median(), unit: "ms"})
	if uid == 0 {
		b.add(row{what: "workshop run --engine docker -- true", against: "docker run --rm", ours: t[5].median(), other: t[2].median(), unit: "ms"})
	}
	return nil
}

// needNPMPeer installs that peer once, and returns its program.
func (b *bench) needNPMPeer() (string, error) {
	dir := filepath.Join(b.bin, "npm-peer")
	program := filepath.Join(dir, "node_modules/.bin/srt")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(b.ctx, "npm", "install", "--silent", "--no-save", "--prefix", dir, npmPeer).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("npm install %s: %w\n%s", npmPeer, err, out)
	}
	return program, nil
}
