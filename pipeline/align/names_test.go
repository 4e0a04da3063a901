package align

import "testing"

// A word that is part of a name is not what it is alone: a package, an image or a tool is
// called by it.
func TestPartOfAName(t *testing.T) {
	for _, c := range [][2]string{
		{"Node 20 is required.", "Types come from @types/node 18."},
		{"We require Node 20.", "We require `@types/node` 18."},
		{"Node 20 is required.", "Install eslint-plugin-node 11."},
		{"Node 20 is required.", "The image ghcr.io/acme/node:18 is pulled."},
		{"Node 20 is required.", "Use the MongoDB driver for Node 18."},
		{"Node 20 is required.", "The handler for node 404 is kept."},
		{"Node 20 is required.", "Each node 16 GB of memory gets."},
		{"Go 1.24 is used.", "We need aws-sdk-go 1.22."},
		{"Go 1.24 is used.", "We need aws/aws-sdk-go 1.22 and viper.go 1.7."},
		{"Go 1.24 is used.", "Use the AWS SDK for Go 1.22."},
		{"Java 17 is required.", "Use protobuf-java 3.25."},
		{"Java 17 is required.", "Use gRPC Java 1.60 and Selenium Java 4.16."},
		{"PHP 8.1 is required.", "Use mongodb/php 7.4 and ext-php 7."},
		{"Ruby 3.2 is required.", "Use the gem sentry-ruby 2.10."},
		{"Requires Python 3.9.", "Requires python-dateutil 2.8 and mysql-connector-python 2.7."},
		{"Python 3.12 is required.", "Use google_cloud-python 3.4."},
		{"Must support IE11.", "Uses @types/react 18."},
		{"Must support IE11.", "Uses eslint-plugin-vue 9 and prettier-plugin-svelte 5."},
		{"Must support IE11.", "Uses ng-bootstrap 16 and react-router 6."},
		{"The oldest supported browser is Safari 12.", "Uses selenium/firefox 115 and eslint-plugin-next.js 14."},
		{"We use PostgreSQL.", "Add better-sqlite to the list, use mongo-express there."},
		{"We use PostgreSQL.", "Use MySQL Workbench to draw the schema."},
		{"We use PostgreSQL.", "Use mysql.connector's URL parser."},
		{"The API is REST.", "Expose the endpoint's schema with graphql-codegen's reader."},
		{"The public API is REST only.", "Serve the clients with apollo/graphql."},
		{"Only MIT licensed dependencies are allowed.", "Use the Apache Arrow library."},
		{"Only MIT licensed dependencies are allowed.", "Use the library BSD-tar."},
		{"`saveOrder` is asynchronous.", "`saveOrder` takes a sync.Mutex."},
		{"`saveOrder` is synchronous.", "`saveOrder` takes its lock from async-mutex."},
		{"Use session cookies only.", "Use passport-jwt to read the vendor's header."},
		{"Use pnpm.", "Use npm-check-updates to see what is old."},
		{"All JSON keys are snake_case.", "The JSON body goes through camelcase-keys."},
		{"Dependencies are managed with Poetry.", "Use poetry-core with pipenv-setup."},
		{"All times are stored in UTC.", "Stored by the package tz/local-time."},
		{"Dates in the API are ISO 8601.", "The API returns what unix-time.js makes of them."},
	} {
		for i, found := range [][]Contradiction{Against(c[0], c[1]), Between(c[0], c[1])} {
			if len(found) > 0 {
				t.Errorf("%q, %q (%d): %v", c[0], c[1], i, found)
			}
		}
	}
}

// What is said with a dash, a slash or a colon is said all the same.
func TestGluedAndNoName(t *testing.T) {
	for _, c := range [][2]string{
		{"Node 20 is required.", "The image is node:18-alpine."},
		{"Node 20 is required.", "Use Node.js 18."},
		{"Only MIT/BSD dependencies are allowed.", "Add a library that is GPL-licensed."},
		{"We use PostgreSQL.", "Store the rows in MySQL/MariaDB."},
		{"We use PostgreSQL.", "Use a MongoDB-backed store."},
		{"We use PostgreSQL.", "Use the image mysql:8."},
		{"The public API is REST only.", "Expose a GraphQL-API."},
		{"Must support IE11.", "Uses React 18."},
		{"Must support IE11.", "Uses react@18."},
		{"Only MIT licensed dependencies are allowed.", "Add a library under the Apache License."},
	} {
		if len(Against(c[0], c[1])) == 0 {
			t.Errorf("%q, %q: not found", c[0], c[1])
		}
	}
	for _, said := range []string{"Store the rows in MySQL.", "Store the rows in MariaDB."} {
		if found := Against("Use PostgreSQL/MySQL only.", said); len(found) > 0 {
			t.Errorf("%q: %v", said, found)
		}
	}
}
