package align

import "testing"

// A word that is part of a name is not what it is alone: a package, an image or a tool is
// called by it.
func TestPartOfAName(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// What people write in the plainest words is found, and what only sounds like it is not.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"Do not add new dependencies.", "Add `github.com/google/uuid` as a dependency."},
		{"Do not add new dependencies.", "Add the dependency `github.com/google/uuid` for ids."},
		{"Do not add dependencies.", "A new dependency, github.com/google/uuid, is added for ids."},
		{"No third-party packages.", "Use `npm install uuid`."},
		{"We use PostgreSQL as the database.", "Store sessions in MongoDB."},
		{"Only MIT or Apache-2.0 licensed packages are allowed.", "Bundle the GPL-3.0 licensed chart library."},
		{"Mails are sent asynchronously.", "Mails are sent synchronously."},
		{"Users sign in with SAML.", "Users sign in with e-mail and password."},
	} {
		if len(Against(c[0], c[1])) != 1 {
			t.Errorf("%q, %q: %v, want one", c[0], c[1], Against(c[0], c[1]))
		}
	}
	for _, c := range [][2]string{
		{"Do not add new dependencies.", "Remove `github.com/google/uuid` as a dependency."},
		{"Do not add new dependencies.", "`github.com/google/uuid` is there as a dependency."},
		{"Do not add new dependencies.", "A new dependency, github.com/google/uuid, is not added."},
		{"Do not add new dependencies.", "Add `github.com/google/uuid` to the tests as a dependency."},
		{"Do not add new dependencies.", "Add   as a dependency between the two modules."},
		{"No third-party packages.", "Users install it with `npm install acme`."},
		{"No new dependencies.", "You get it by `npm install -g acme`; people can install acme with `pip install acme`, too."},
		{"No new packages.", "Add a type to the package internal/queue."},
		{"We use PostgreSQL as the database.", "The tests store sessions in MongoDB."},
		{"We use PostgreSQL as the database.", "Do not store sessions in MongoDB."},
		{"We use PostgreSQL as the database of the search.", "Store sessions in MongoDB."},
		{"Only MIT licensed packages are allowed.", "Include the text of the GPL-3.0 licence of readline in the comparison."},
		{"Only MIT licensed packages are allowed.", "Do not bundle the GPL-3.0 licensed chart library."},
		{"Mails are sent asynchronously.", "Mails are rendered synchronously."},
		{"Mails are sent asynchronously.", "Mails are not sent synchronously."},
		{"Mails are sent asynchronously.", "Mails are sent synchronously in the tests."},
		{"Mails are sent asynchronously.", "Receipts are sent synchronously."},
		{"Users sign in with SAML.", "Users sign in with e-mail and password in development."},
		{"Users sign in with SAML.", "Users sign in with e-mail and password as a second factor."},
		{"Users sign in with a password.", "Users sign in with e-mail and password."},
	} {
		for i, found := range [][]Contradiction{Against(c[0], c[1]), Between(c[0], c[1])} {
			if len(found) > 0 {
				t.Errorf("%q, %q (%d): %v", c[0], c[1], i, found)
			}
		}
	}
}
