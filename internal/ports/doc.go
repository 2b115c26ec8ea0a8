// Package ports keeps the registry of one user's host ports: which worker's port of which
// checkout has which number, since when. A file reserves a number, or leaves it open
// (`published: auto`): then one is chosen that is the same at each `up` of a checkout.
package ports
