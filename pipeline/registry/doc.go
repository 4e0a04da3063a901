// Package registry is the way from a sandbox without a network to the package
// registries that the operator's tools use, and to nothing else.
//
// A [Gateway] speaks TLS to the registries. For each setup a [Session] opens one
// unix socket per [Kind] of registry, which clients in the sandbox reach through a
// bridge on their own loopback, with plain HTTP. So the gateway sees every path: GET
// and HEAD alone, the paths that such a registry has, no query, no body, nothing of
// the client's headers. It dials itself and refuses addresses that are not public,
// after resolving, unless the operator listed the registry as private. What comes
// back is capped and kept in a content-addressed cache, which all runs share and no
// repository can write to.
//
// What a registry can still be told is which package names are asked for.
package registry
