-- KEYS fence
-- Returns {ok, token, number}.

local err = foreign(KEYS[1], 'hash')
if err then
  return err
end
local position = redis.call('HMGET', KEYS[1], 'committed', 'number')
return {'ok', position[1] or '0', position[2] or '0'}
