#!/bin/bash
echo nothing to see
