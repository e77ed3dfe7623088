"""Rules of CustomResourceDefinitions: of the whole (`spec`), its versions (`versions`), and their schemas, which are
structural (`structure`), of OpenAPI v3 (`openapi`), with defaults that fit (`defaults`). Pure."""
