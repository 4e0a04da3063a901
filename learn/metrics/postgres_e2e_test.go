//go:build e2e

package metrics

import "forge/pipeline/store/storetest"

func init() { databases = append(databases, database{"postgres", storetest.Postgres}) }
