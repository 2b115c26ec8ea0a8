// Package docker carries plans out on a Docker Engine, API 1.41 (20.10) or
// later. It is the only package that knows the Docker client.
//
// It translates steps to API calls and decides nothing. An unknown field of a
// service is an error, not dropped.
package docker
