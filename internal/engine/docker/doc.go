// Package docker carries plans out on a Docker Engine, API 1.41 (20.10) or
// later. It is the only package that knows the Docker client.
//
// What it decides is how to say a step to the engine, never whether. Every
// field of a service that it does not know is an error, not dropped.
package docker
