"""The same model in Spark, Ray and Dask: through its own library, and through qwyc."""
