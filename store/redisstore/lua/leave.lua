-- KEYS sessions, info
-- ARGV replica
-- Returns {ok}.

local err = foreign(KEYS[1], 'zset') or foreign(KEYS[2], 'hash')
if err then
  return err
end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return {'ok'}
